//! tollgate keeps programs inside the limits of LLM APIs, and services inside their own.
//!
//! A program that calls an LLM API wraps its client once, and then never earns a 429 of its own
//! making, and never leaves quota unused while work waits:
//!
//! ```
//! use tollgate::{Cost, Limiter, Quota};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500).tpm(30_000)).build()?;
//! let permit = limiter.acquire("gpt-4o", &Cost::new().tokens(1_200)).await?;
//! // ... the request is sent; its response says that it took 900 tokens ...
//! permit.settle(&Cost::new().tokens(900));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Most programs don't call the limiter themselves: `middleware::RateLimitLayer` does, around any
//! Tower service, and reads key, cost and usage out of the traffic. Which key, which algorithm and
//! which margin: the [`guide`] says.
//!
//! # The journey of a request
//!
//! ```text
//! request ──▶ estimate ──▶ admit ──▶ send ──▶ observe ──▶ settle
//!            provider     limiter   inner    body and     permit
//!                                   service  headers
//! ```
//!
//! One direction: nothing on this way goes back to ask an earlier room.
//!
//! | room | what it is |
//! |---|---|
//! | [`quota`] | values: dimensions, limits, quotas, costs, usage; an invalid one can't be made |
//! | [`engine`] | pure state: buckets, and one decision over all buckets of a key |
//! | [`provider`] | pure reading: what a provider's bytes and headers mean |
//! | [`limiter`] | the only owner of locks, clock, queue and wake-ups |
//! | `middleware` | the Tower layer, and its glue to HTTP clients |
//! | `store` | state across restarts, and between the processes of a machine |
//! | [`cluster`] | state across machines: a bus that tells of refusals, limits in Redis or Valkey |
//! | `config` | one file of YAML for all of it, the environment and flags over it |
//! | `telemetry` | figures of a limiter for whoever collects them |
//!
//! Dependencies point up this table, never down.
//!
//! # Invariants
//!
//! - **Counts as the provider counts.** What a request is charged at admission is the provider's
//!   rule, not its usage; each [`provider::Profile`] has its own.
//! - **All or none.** A reservation is taken in every bucket of every key that it names, or in none,
//!   and a refusal leaves every bucket as it was.
//! - **Never over.** With `actual <= reserved`, what is charged never exceeds the limit of the
//!   provider's own algorithm, whenever between sending and end it charges.
//! - **Settled once.** A [`limiter::Permit`] ends exactly once: settled by what happened, released
//!   if the request never left, and kept as charged if it is dropped.
//! - **Exact waits.** A request that doesn't fit is told the nanosecond at which it will, if nobody
//!   else comes; not one before.
//! - **In order.** Grants on one key come in order of arrival; a big request isn't starved by small
//!   ones, and none waits behind one that a narrower key of its own holds up.
//! - **Bounded.** Keys, queues, logs of windows and scanners of responses hold a bounded amount,
//!   whatever passes.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `requests` (default) | [`provider`]: reading of requests, their images measured. Without it there is no `Profile::read_request`: costs are given by the caller |
//! | `tower` (default) | `middleware`: the layer around any service; reads requests |
//! | `zones` (default) | calendar limits in any time zone, which Gemini's default quotas need. Without it a zone other than UTC is an error when a limiter is built or a file is read |
//! | `regex` | quotas for keys that a regular expression matches. Without it they are an error when a limiter is built or a file is read |
//! | `hyper-util` | the layer around hyper-util's client: which of its errors say that a request never left |
//! | `reqwest` | the layer around a `reqwest::Client`; `count_tokens` |
//! | `axum` | `middleware::respond`: server mode, which answers who is over the limit |
//! | `reqwest-middleware` | the layer as a link of a chain of reqwest-middleware |
//! | `yaml` | `config`: the configuration file, [`Limiter`]s out of it; `store::Yaml`: state across restarts |
//! | `sqlite` | `store::Sqlite`: state across restarts, shared by the processes of a machine |
//! | `redis` | [`cluster`]: limits that many machines share through Redis or Valkey; the bus over its channels |
//! | `nats` | [`cluster`]: the bus over NATS |
//! | `metrics` | `telemetry::Metrics`: counters, gauges and histograms through the facade `metrics` |
//! | `tokenizer` | `Profile::with_tokenizer`: exact counts of prompts to OpenAI's models |
//! | `full` | all of them |
//!
//! Without features there is no HTTP client and no server in the tree. Features only add: none changes
//! what is charged or how JSON is read, and none installs cryptography for the rest of a program. TLS to
//! Redis and NATS goes by the provider of rustls that the program has installed, else by ring for these
//! connections alone. reqwest chooses its own beside it; a program that calls rustls itself, with another
//! provider than ring and without installing it, has to install it once `redis` or `nats` is on, since
//! rustls then knows two.
//!
//! The command, the server and the simulated provider are packages of their own: `tollgate-cli`,
//! `tollgate-serve`, `tollgate-simulate`.

extern crate alloc;

mod answer;
mod backend;
mod clock;
pub mod engine;
mod error_chain;
mod event;
mod key;
pub mod limiter;
#[cfg(feature = "tower")]
pub mod middleware;
mod plan;
pub mod provider;
pub mod quota;
mod sync;
mod timestamp;

pub mod cluster;
#[cfg(any(feature = "yaml", feature = "sqlite"))]
pub mod store;
#[cfg(feature = "metrics")]
pub mod telemetry;

#[cfg(feature = "yaml")]
pub mod config;

#[doc = include_str!("guide.md")]
pub mod guide {}

/// Text of up to 24 bytes in place: what keys are given in.
pub use compact_str::CompactString;
#[doc(hidden)]
pub use error_chain::{ErrorChain, causes};
pub use limiter::{Limiter, Permit};
#[cfg(feature = "tower")]
pub use middleware::RateLimitLayer;
pub use quota::{Cost, Quota, Usage};
pub use timestamp::Timestamp;

#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../README.md")]
struct Readme;
