//! Readers of bytes from outside, fed with what nobody would send.
//!
//! Each target is a test that runs two thousand mutated seeds, always the same ones.
//! `TOLLGATE_FULL=1 cargo nextest run --release --all-features --test fuzz` runs a hundred thousand;
//! `TOLLGATE_FUZZ_SEED=n` begins elsewhere. An input that fails is shown as a byte string, to become
//! a test beside the reader.
//!
//! A new target is a file with a test that gives [`fuzz`](tollgate_testing::fuzz::fuzz) its seeds (small ones, of
//! each kind that there is) and a function of bytes that panics where something is wrong. The
//! mutations know JSON, events, headers and numbers; they are not guided by coverage.

mod errors;
mod headers;
mod requests;
mod scanner;
#[expect(dead_code, reason = "what they say is tested in `it`")]
#[path = "../it/provider/scanner_fixtures.rs"]
mod scanner_fixtures;
#[path = "../it/provider/scanner_messages.rs"]
mod scanner_messages;
