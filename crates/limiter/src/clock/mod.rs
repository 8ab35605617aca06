//! Time: the [`Clock`] trait and its implementations.

mod boot;
mod manual_clock;
mod system_clock;
mod tokio_clock;

use std::fmt;
use std::pin::Pin;

pub use boot::Boot;
pub use manual_clock::ManualClock;
pub use system_clock::SystemClock;
pub use tokio_clock::TokioClock;

use crate::timestamp::Timestamp;

/// A future that is ready at a given time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A source of time: the current time, and timers.
///
/// The crate reads time only through this trait.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time, which should not run back.
    fn now(&self) -> Timestamp;

    /// Returns a future that is ready when [`now`](Self::now) has reached `time`, and not before.
    ///
    /// # Panics
    /// Those of [`SystemClock`] and [`TokioClock`] panic outside a tokio runtime with timers.
    fn sleep_until(&self, time: Timestamp) -> Sleep;

    /// Returns the current boot of the machine, if it is known. It makes the clocks of several processes
    /// comparable even if they were set differently, or didn't run while the machine was suspended.
    fn boot(&self) -> Option<Boot> {
        None
    }
}
