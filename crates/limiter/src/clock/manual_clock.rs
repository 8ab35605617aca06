use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{Boot, Clock, Sleep};
use crate::sync::Mutex;
use crate::timestamp::Timestamp;

/// A clock that moves only by [`advance`](Self::advance) and [`advance_to`](Self::advance_to). Clones share
/// the same time.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::limiter::{Clock, ManualClock};
/// let clock = ManualClock::new();
/// let start = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now() - start, Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Mutex<Manual>>);

#[derive(Debug, Default)]
struct Manual {
    advanced: Duration,
    /// The boot at the start of the clock.
    boot: Option<Boot>,
    suspended: Duration,
    /// The wakers of sleepers, by wake-up time and the number of the sleeper.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    last_number: u64,
}

impl ManualClock {
    /// The time at which a manual clock starts: 2026-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_unix_secs(1_767_225_600);

    /// Creates a clock at [`START`](Self::START).
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a clock at [`START`](Self::START) of a machine with this boot.
    pub fn with_boot(boot: Boot) -> Self {
        let manual = Manual { boot: Some(boot), ..Manual::default() };
        Self(Arc::new(Mutex::new(manual)))
    }

    /// Moves the clock forward and wakes the sleepers that are due.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut manual = self.0.lock();
            manual.advanced = manual.advanced.saturating_add(by);
            let after = manual.now().add_nanos(1);
            let later = manual.sleepers.split_off(&(after, 0));
            std::mem::replace(&mut manual.sleepers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// Suspends the machine for this time: the clock stops, as a monotonic clock does, but the uptime of the
    /// boot increases.
    pub fn suspend(&self, by: Duration) {
        let mut manual = self.0.lock();
        manual.suspended = manual.suspended.saturating_add(by);
    }

    /// Moves the clock forward to `time`, unless it has already reached it.
    pub fn advance_to(&self, time: Timestamp) {
        self.advance(time - self.now());
    }
}

impl Manual {
    fn now(&self) -> Timestamp {
        ManualClock::START + self.advanced
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().now()
    }

    fn sleep_until(&self, time: Timestamp) -> Sleep {
        let mut manual = self.0.lock();
        manual.last_number += 1;
        Box::pin(ManualSleep { clock: self.clone(), sleeper: (time, manual.last_number) })
    }

    fn boot(&self) -> Option<Boot> {
        let manual = self.0.lock();
        manual.boot.map(|boot| boot.after(manual.advanced.saturating_add(manual.suspended)))
    }
}

/// The future of a sleep.
struct ManualSleep {
    clock: ManualClock,
    /// The wake-up time and the number of the sleeper.
    sleeper: (Timestamp, u64),
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut manual = self.clock.0.lock();
        if manual.now() >= self.sleeper.0 {
            return Poll::Ready(());
        }
        let old = manual.sleepers.insert(self.sleeper, cx.waker().clone());
        // Dropped without the lock, since the waker may own a task that reads the clock when it is dropped.
        drop(manual);
        drop(old);
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        let own = self.clock.0.lock().sleepers.remove(&self.sleeper);
        // Dropped without the lock, as in `poll`.
        drop(own);
    }
}
