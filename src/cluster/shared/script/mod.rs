//! The Lua script that decides atomically over all buckets of a call, in the server: encoding of
//! its arguments and decoding of its responses. Does no I/O.
//!
//! Times are microseconds of the server's clock. Amounts are below 2^53, where doubles are exact.

mod answer;
mod call;
mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod text;

pub(super) use answer::{Answer, RetryAfter, Verdict, View};
pub(super) use call::{Amounts, Call, Id, LeaseRequest, MAX_AMOUNT, Part, ServerTime, Verb};
