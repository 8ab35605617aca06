//! Buckets, and the atomic admission decision over all buckets of a key.
//!
//! The engine is pure: integer arithmetic on `core` and `alloc`, without a clock, locks or I/O. It allocates
//! only the log of a sliding window and the state of a window of a clock or calendar. Every function takes
//! the current time as `now`. Arithmetic saturates, and no input causes a panic. The boundaries of calendar
//! windows are computed in advance.
//!
//! For each request, call [`check`] (a dry run) or [`reserve`] (all buckets or none), then exactly one of
//! [`settle`] (the request was sent; these are the actual amounts) and [`release`] (it was never sent).
//!
//! - `reserve` takes the amount of a dimension that is charged when the request is sent
//!   ([`SettleAt::Send`]).
//! - It *holds* the amounts of other dimensions: a held amount is not available to other requests, while
//!   the bucket refills as if nothing had been taken. `settle` drops the hold and takes the actual amount
//!   at that time. The provider therefore never counts more than its limit, at whatever time between the
//!   start and the end it counts a request.
//!
//! Keys, queues and wake-ups are part of [`limiter`](crate::limiter).
//!
//! ```
//! use std::time::Duration;
//! use paceline_limiter::Timestamp;
//! use paceline_limiter::engine::{self, Bucket, Rule, Wait};
//! use paceline_limiter::quota::{Algorithm, Cost, Margin, Quota, SettleAt};
//!
//! let quota = Quota::new().rpm(2);
//! let rule = |limit| Rule::new(limit, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send);
//! let rules: Vec<Rule> = quota.limits().iter().map(rule).collect();
//! let mut buckets: Vec<Bucket> = rules.iter().map(Bucket::new).collect();
//!
//! let (now, cost) = (Timestamp::from_unix_secs(1), Cost::new());
//! assert!(engine::reserve(&rules, &mut buckets, &cost, now).is_ok());
//! assert!(engine::reserve(&rules, &mut buckets, &cost, now).is_ok());
//! let short = engine::reserve(&rules, &mut buckets, &cost, now).unwrap_err();
//! assert_eq!(short.wait, Wait::At(now + Duration::from_secs(30)));
//! ```
//!
//! [`SettleAt::Send`]: crate::quota::SettleAt::Send
#![deny(clippy::float_arithmetic, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

mod admission;
mod bucket;
mod carry;
mod concurrency;
mod earliest;
mod fixed_window;
mod grid_window;
mod packed;
pub(crate) mod parameters;
mod rule;
mod sliding_window;
mod timeline;
mod token_bucket;
mod wait;

pub use admission::{charge, check, commit, fits, release, reserve, settle};
pub use bucket::{Bucket, Level, Saved};
pub use rule::Rule;
pub use timeline::Timeline;
pub use wait::{Shortfall, Wait};
