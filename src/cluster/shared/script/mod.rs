//! The script that decides over all buckets of a call at once, in the server: its arguments, and what
//! it answers. Knows nothing of connections.
//!
//! Times are microseconds of the server's clock; amounts are below 2^53, as its numbers are exact
//! up to there.

mod answer;
mod call;
mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod text;

pub(super) use answer::{Answer, RetryAfter, Verdict, View};
pub(super) use call::{Amounts, Call, Id, LeaseRequest, MAX_AMOUNT, Part, ServerTime, Verb};
