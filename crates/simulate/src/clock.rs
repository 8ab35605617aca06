//! The clock of the server, the only code that reads the time.

use std::time::{Instant, SystemTime};

/// A monotonic clock that starts at the system time.
#[derive(Debug)]
pub(super) struct Clock {
    epoch_ns: u64,
    started: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the server's one clock is started here")]
    pub(super) fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let epoch_ns = since_epoch.map_or(0, |since| since.as_nanos());
        Self { epoch_ns: u64::try_from(epoch_ns).unwrap_or(0), started: Instant::now() }
    }

    /// Nanoseconds since the Unix epoch.
    #[expect(clippy::disallowed_methods, reason = "the server's one clock is read here")]
    pub(super) fn now_ns(&self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.epoch_ns.saturating_add(elapsed)
    }
}
