//! The Lua script that decides atomically over all buckets of a call, in the server: encoding of
//! its arguments and decoding of its responses. Does no I/O.
//!
//! Times are microseconds of the server's clock. Amounts are below 2^53, where doubles are exact.

mod call;
mod decode;
mod encode;
mod response;
#[cfg(test)]
mod tests;
mod text;
mod view;

pub(super) use call::{
    Call, LeaseRequest, MAX_AMOUNT, Operation, Order, Part, ServerTime, wake_channel,
};
pub(super) use encode::use_span;
pub(super) use response::{LeaseAnswer, Outcome, Response, RetryAfter};
pub(super) use view::{Amounts, Id, KnownReservation, Uses, View};
