use std::time::{Duration, Instant};

/// Waits until a condition holds, such as the arrival of a message of a real server. Panics if it doesn't within a time that
/// is long enough for a machine that is busy with other tests.
#[allow(clippy::disallowed_methods, reason = "a real server takes real time")]
pub fn until(event: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{event}: not within {PATIENCE:?}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
