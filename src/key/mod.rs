//! The parts of a key's state: plain state machines over values, with `now` as an argument.
//!
//! They own no lock, read no clock and call no waker, and none knows the
//! [`KeyState`](crate::limiter) that owns them.
//!
//! - [`limits`]: the buckets of a key under its plan.
//! - [`queue`]: requests and gates that wait, in the order of their turns.
//! - [`adapt`]: evidence of the provider's limits: cool-downs, reduced limits, headers.
//! - [`journal`]: changes that a store has not collected yet.

pub(crate) mod adapt;
pub(crate) mod changes;
pub(crate) mod denial;
pub(crate) mod journal;
pub(crate) mod limits;
pub(crate) mod queue;
pub(crate) mod snapshot;
