use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::timestamp::Timestamp;

/// A future that ends at a given time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// Where time comes from: both what time it is and how to wait for another.
///
/// The only place in the crate that reads time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time. Should not run back.
    fn now(&self) -> Timestamp;

    /// A future that ends when [`now`](Self::now) has reached `time`, and not before.
    fn sleep_until(&self, time: Timestamp) -> Sleep;

    /// For how long the machine has been running, where that is known: by it, clocks of several
    /// processes can be compared, though they were set differently or stood still while it slept.
    fn boot(&self) -> Option<Boot> {
        None
    }
}

/// A machine that was started, and how long it has been running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boot {
    /// Another one each time that a machine is started.
    pub id: u128,
    /// The time since then, including the time in which the machine was suspended.
    pub uptime: Duration,
}

impl Boot {
    /// Creates the boot of a machine that has been running for `uptime`.
    pub fn new(id: u128, uptime: Duration) -> Self {
        Self { id, uptime }
    }

    /// Reads the boot from Linux: `/proc/sys/kernel/random/boot_id` is a UUID, and `/proc/uptime` starts with
    /// seconds and hundredths (proc(5)).
    fn read() -> Option<Self> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let id = u128::from_str_radix(&id.trim().replace('-', ""), 16).ok()?;
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, hundredths) = uptime.split_whitespace().next()?.split_once('.')?;
        let nanos =
            format!("{hundredths:0<9.9}").parse().ok().filter(|&nanos| nanos < 1_000_000_000)?;
        Some(Self { id, uptime: Duration::new(seconds.parse().ok()?, nanos) })
    }

    fn after(self, more: Duration) -> Self {
        Self { uptime: self.uptime.saturating_add(more), ..self }
    }
}

/// The system's monotonic clock, set to the time of day when it was made: a change of the system's
/// time doesn't move it. Waits on tokio's timer.
///
/// Reads the processor's own counter, and sets it right by the monotonic clock about every 100 ms:
/// the counter alone would run off by seconds a day, and the clock alone costs three times as much.
/// Making one takes up to 200 ms (the counter is measured once per process): make one, and share it.
/// Clones are the same clock.
///
/// Where tokio's time is paused (its `test-util`), a sleep can end before the time that it was for: the
/// clock then moves forward to that time. So a limiter with this clock waits in paused time as tokio's
/// own timers do. Between two sleeps this clock still follows the system, not tokio's time.
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
    /// The offset to add to the counter's nanoseconds, wrapping, and the reading at which it was measured.
    correction: AtomicU64,
    corrected_at: AtomicU64,
}

impl SystemClock {
    /// A clock that starts at the system's time of day.
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
    #[cold]
    fn correct(&self) -> Timestamp {
        let now = self.system().add_nanos(self.ahead.load(Ordering::Relaxed));
        // Read second: a thread that is held up in between puts time back a little, never ahead.
        let counted = self.counted();
        self.correction.store(now.as_nanos().wrapping_sub(counted), Ordering::Relaxed);
        self.corrected_at.store(counted, Ordering::Relaxed);
        now
    }

    #[inline]
    fn counted(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }

    /// Moves the clock forward to a time at which a sleep has ended. Without paused time the clock has
    /// reached it, and nothing changes.
    fn reach(&self, time: Timestamp) {
        self.ahead.fetch_max(time.nanos_since(self.system()), Ordering::Relaxed);
        self.correct();
    }

    /// Without what paused time has added.
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
        // Of the exact time, and read before tokio's: so the sleep never ends early.
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

/// Tokio's clock, which tests can pause: `#[tokio::test(start_paused = true)]` runs an hour of
/// waiting in milliseconds. Time starts at [`ManualClock`]'s start when the clock is made.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    started: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that starts now; make it inside the runtime whose time it follows.
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

/// A clock that moves only by [`advance`](Self::advance) and [`advance_to`](Self::advance_to). Clones share the same
/// time.
///
/// ```
/// use std::time::Duration;
/// use tollgate::limiter::{Clock, ManualClock};
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
    /// As it was at the start.
    boot: Option<Boot>,
    slept: Duration,
    /// By wake-up time and the sleeper's own number.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    next: u64,
}

impl ManualClock {
    /// Where manual time starts: 2026-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_unix_secs(1_767_225_600);

    /// A clock at [`START`](Self::START).
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock at [`START`](Self::START), of a machine that was started then or before.
    pub fn with_boot(boot: Boot) -> Self {
        let manual = Manual { boot: Some(boot), ..Manual::default() };
        Self(Arc::new(Mutex::new(manual)))
    }

    /// Moves the clock on and wakes whoever slept until then.
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

    /// The machine sleeps for so long: the clock stands still, as a monotonic one does, and the machine
    /// has been running for longer.
    pub fn suspend(&self, by: Duration) {
        let mut manual = self.0.lock();
        manual.slept = manual.slept.saturating_add(by);
    }

    /// Moves the clock to `time`, unless it is there or later already.
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
        manual.next += 1;
        Box::pin(ManualSleep { clock: self.clone(), place: (time, manual.next) })
    }

    fn boot(&self) -> Option<Boot> {
        let manual = self.0.lock();
        manual.boot.map(|boot| boot.after(manual.advanced.saturating_add(manual.slept)))
    }
}

struct ManualSleep {
    clock: ManualClock,
    place: (Timestamp, u64),
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut manual = self.clock.0.lock();
        if manual.now() >= self.place.0 {
            return Poll::Ready(());
        }
        let old = manual.sleepers.insert(self.place, cx.waker().clone());
        // Not under the lock: it may own a task that looks at the clock as it is dropped.
        drop(manual);
        drop(old);
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        let own = self.clock.0.lock().sleepers.remove(&self.place);
        // The lock is open again: see `poll`.
        drop(own);
    }
}

/// A time too far away for the timer is slept until for ever.
fn tokio_sleep(until: Option<tokio::time::Instant>) -> Sleep {
    match until {
        Some(until) => Box::pin(tokio::time::sleep_until(until)),
        None => Box::pin(std::future::pending()),
    }
}

const CORRECT_EVERY: u64 = 100_000_000;
