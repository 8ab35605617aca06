use super::{Clock, ManualClock, Sleep};
use crate::timestamp::Timestamp;

/// Tokio's clock, which tests can pause: `#[tokio::test(start_paused = true)]` runs an hour of waiting in
/// milliseconds. A new clock starts at [`ManualClock::START`].
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    started: tokio::time::Instant,
}

impl TokioClock {
    /// Creates a clock that starts now. Call this inside the runtime whose time the clock follows.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads tokio's clock")]
    pub fn new() -> Self {
        Self { started: tokio::time::Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads tokio's clock")]
    fn now(&self) -> Timestamp {
        ManualClock::START + self.started.elapsed()
    }

    fn sleep_until(&self, time: Timestamp) -> Sleep {
        let after_start = time - ManualClock::START;
        tokio_sleep(self.started.checked_add(after_start))
    }
}

/// Returns a sleep by tokio's timer. Without a time, which is too far away for the timer, it never ends.
pub(super) fn tokio_sleep(until: Option<tokio::time::Instant>) -> Sleep {
    match until {
        Some(until) => Box::pin(tokio::time::sleep_until(until)),
        None => Box::pin(std::future::pending()),
    }
}
