//! Admission under limits of requests, tokens, money and concurrency, for work of any kind.
//!
//! A [`Limiter`] keeps the buckets of each key and grants [`Permit`]s. It knows no HTTP, no provider and no price: a
//! request is a key and a [`Cost`], an answer is what the caller reports. [`paceline`](https://docs.rs/paceline) builds on
//! it a Tower layer and the rules of LLM providers, and contains these modules.
//!
//! | module | content |
//! |---|---|
//! | [`quota`] | dimensions, limits, quotas, costs and usage |
//! | [`engine`] | buckets, and the admission decision over all buckets of a key; no clock, locks or I/O |
//! | [`limiter`] | the limiter: admission, queues, clocks and events |
//! | [`seam`] | what the other packages of paceline need beyond these; unstable |
//!
//! ```
//! use paceline_limiter::{Cost, Limiter, Quota};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let limiter = Limiter::builder().quota("renders", Quota::new().rpm(500).concurrency(8)).build()?;
//! let permit = limiter.acquire("renders", &Cost::new()).await?;
//! // ... work ...
//! permit.settle(&Cost::new());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `zones` (default) | limits that reset at midnight in any time zone; without it, only in UTC |
//! | `regex` | quotas for keys that match a regular expression |
//! | `schema` | JSON schemas of the values that a configuration states |

extern crate alloc;

mod answer;
mod backend;
mod clock;
pub mod engine;
mod event;
mod key;
pub mod limiter;
mod plan;
pub mod quota;
mod refusal;
pub mod seam;
mod stated;
mod sync;
mod timestamp;

pub use limiter::{Limiter, Permit};
pub use quota::{Cost, Key, Quota, Usage};
pub use timestamp::Timestamp;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
