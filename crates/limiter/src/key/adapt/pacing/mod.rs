//! The pacing of one key whose limits are unknown, wrong or changing: rates learned from the provider's
//! answers.
//!
//! Pure: no lock, no clock. It knows a request by the time at which it was sent. Limits that were configured
//! are enforced by the key's buckets beside it. Times are [`Timestamp`](crate::Timestamp)s, spans
//! seconds, rates amounts per second, all as `f64` where they are measured.
//!
//! - [`Controller`]: the decision about one request, and the reaction to answers.
//! - `refusals`: the reaction of the controller to a refusal.
//! - `slow_start`: the first seconds, in which nothing is known.
//! - `pace`: a learned rate of one dimension and its growth.
//! - `column`, `columns`: the sums of each dimension, from which its rate is measured.
//! - `send_log`: requests by the time at which they were sent.
//! - `pause`: pauses after refusals, and confidence in `Retry-After`.
//! - `levels`: how often a limit must have fallen to explain refusals.
//! - `chance`: refusals that don't depend on the rate, shown by a limit that would have fallen again and again.
//! - `trial`: requests that are sent quickly after a refusal, to find out whether it was chance.
//! - `lately`: what was accepted in the last minute of sending, a quarter of which a learned rate never falls below.
//! - `last_event`: the refusals that belong to one event.
//! - `in_flight`: requests in flight, and a learned cap on them.

mod chance;
mod column;
mod columns;
mod controller;
mod in_flight;
mod last_event;
mod lately;
mod learned;
mod levels;
mod pace;
mod pause;
mod reaction;
mod refusals;
mod send_log;
mod slow_start;
mod trial;
mod units;

pub(crate) use column::ConfiguredRate;
pub(crate) use controller::Controller;
pub(crate) use reaction::RateRefusal;

#[cfg(test)]
mod tests;
