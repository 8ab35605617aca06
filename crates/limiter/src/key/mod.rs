//! The parts of a key's state: pure state machines with `now` as an argument.
//!
//! They own no lock, read no clock, call no waker, and don't know the [`KeyState`](crate::limiter) that
//! owns them.
//!
//! - [`limits`]: the buckets of a key under its plan.
//! - [`queue`]: waiting requests and gates, in the order of their turns.
//! - [`adapt`]: cool-downs, reduced limits, and usage by others that headers show.
//! - [`journal`]: changes that a store hasn't collected yet.
//! - [`waits`]: long waits, and requests that wait for other keys.

pub(crate) mod adapt;
pub(crate) mod changes;
pub(crate) mod denial;
pub(crate) mod journal;
pub(crate) mod limits;
pub(crate) mod queue;
pub(crate) mod snapshot;
pub(crate) mod waits;
