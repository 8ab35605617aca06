//! Pure state: buckets, and the one atomic decision over all buckets of a key.
//!
//! Integers only, and nothing but `core` and `alloc`; no clock, no lock, no I/O, no allocation but
//! that of a sliding window's log and of a calendar window's figures. Every function takes `now`.
//! Arithmetic saturates and no input panics. Of calendars and time
//! zones it knows the boundaries, as values.
//!
//! A request's way through here: [`check`] (dry) or [`reserve`] (all buckets or none), then exactly
//! one of [`settle`] (it left, and this is what it took) and [`release`] (it never left).
//!
//! - A dimension that is charged when the request is sent ([`SettleAt::Send`]) is taken by
//!   `reserve` for good.
//! - Any other is *held*: a held amount can't be given to somebody else, and the bucket goes on
//!   refilling as if nothing had been taken. `settle` drops the hold and takes the actual amount at
//!   that time. So whenever the provider counts the request, from its sending to its end, it never
//!   counts more than its limit.
//!
//! It doesn't queue, doesn't wake anybody and doesn't know what a key is; that is
//! [`limiter`](crate::limiter).
//!
//! ```
//! use std::time::Duration;
//! use tollgate::Timestamp;
//! use tollgate::engine::{self, Bucket, Rule, Wait};
//! use tollgate::quota::{Algorithm, Cost, Margin, Quota, SettleAt};
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
mod concurrency;
mod fixed_window;
mod grid_window;
mod packed;
mod rule;
mod sliding_window;
#[cfg(feature = "redis")]
mod terms;
mod timeline;
mod token_bucket;
mod wait;

pub use admission::{charge, check, commit, fits, release, reserve, settle};
pub use bucket::{Bucket, Level, Saved};
pub use rule::Rule;
#[cfg(feature = "redis")]
pub(crate) use terms::Terms;
pub use timeline::Timeline;
pub use wait::{Shortfall, Wait};
