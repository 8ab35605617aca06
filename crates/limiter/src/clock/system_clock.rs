use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::tokio_clock::tokio_sleep;
use super::{Boot, Clock, Sleep};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::timestamp::Timestamp;

/// The system's monotonic clock, set to the time of day at its creation. Later changes of the system's
/// time don't affect it. Its timers are tokio's.
///
/// It reads the processor's counter and corrects it by the monotonic clock about every 100 ms: the
/// counter alone would drift by seconds a day, and the monotonic clock alone takes three times as long to
/// read. The first clock of a process takes up to 200 ms to create, since the counter is calibrated.
/// Clones share the same clock.
///
/// While tokio's time is paused (`test-util`), a sleep can end early by the system's time. The clock then
/// moves forward to the end of the sleep, so that a limiter with this clock waits in paused time as
/// tokio's own timers do. Between two sleeps the clock follows the system, not tokio's time.
#[derive(Debug, Clone)]
pub struct SystemClock(Arc<System>);

#[derive(Debug)]
struct System {
    started: Instant,
    epoch: Timestamp,
    /// Nanoseconds by which paused time has moved this clock forward.
    ahead: AtomicU64,
    counter: quanta::Clock,
    origin: u64,
    /// The offset to add to the counter's nanoseconds, wrapping.
    correction: AtomicU64,
    /// The counter's nanoseconds at the last correction.
    corrected_at: AtomicU64,
}

impl SystemClock {
    /// Creates a clock that starts at the system's time of day.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clocks")]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let epoch = Timestamp::from(SystemTime::now());
        Self(Arc::new(System {
            started: Instant::now(),
            epoch,
            ahead: AtomicU64::new(0),
            origin: counter.raw(),
            counter,
            correction: AtomicU64::new(epoch.as_nanos()),
            corrected_at: AtomicU64::new(0),
        }))
    }
}

impl System {
    /// Corrects the counter by the monotonic clock. Returns the exact time.
    #[cold]
    fn correct(&self) -> Timestamp {
        let now = self.system().add_nanos(self.ahead.load(Ordering::Relaxed));
        // The counter is read second, so that a thread suspended in between sets time back a little, and
        // never ahead.
        let counted = self.counted();
        self.correction.store(now.as_nanos().wrapping_sub(counted), Ordering::Relaxed);
        self.corrected_at.store(counted, Ordering::Relaxed);
        now
    }

    /// Returns the nanoseconds of the counter since the creation of the clock.
    #[inline]
    fn counted(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }

    /// Moves the clock forward to the end of a sleep. Unless time is paused, the clock has already reached it.
    fn reach(&self, time: Timestamp) {
        self.ahead.fetch_max(time.nanos_since(self.system()), Ordering::Relaxed);
        self.correct();
    }

    /// Returns the monotonic time, without the amount that paused time has added.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clocks")]
    fn system(&self) -> Timestamp {
        self.epoch + self.started.elapsed()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let system = &*self.0;
        let counted = system.counted();
        if counted.wrapping_sub(system.corrected_at.load(Ordering::Relaxed)) > CORRECT_EVERY {
            return system.correct();
        }
        Timestamp::from_nanos(counted.wrapping_add(system.correction.load(Ordering::Relaxed)))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads tokio's clock")]
    fn sleep_until(&self, time: Timestamp) -> Sleep {
        // The exact time, read before tokio's, so that the sleep never ends early.
        let left = time - self.0.correct();
        let sleep = tokio_sleep(tokio::time::Instant::now().checked_add(left));
        let system = Arc::clone(&self.0);
        Box::pin(async move {
            sleep.await;
            system.reach(time);
        })
    }

    fn boot(&self) -> Option<Boot> {
        Boot::read()
    }
}

/// The time between corrections of the counter, in nanoseconds.
const CORRECT_EVERY: u64 = 100_000_000;
