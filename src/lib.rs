//! A rate limiter for LLM APIs: requests queue and go out as soon as the provider's limits allow.
//!
//! ```
//! use tollgate::{Cost, Limiter, Quota};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500).tpm(30_000)).build()?;
//! let permit = limiter.acquire("gpt-4o", &Cost::new().tokens(1_200)).await?;
//! // ... send the request; its response reports 900 tokens ...
//! permit.settle(&Cost::new().tokens(900));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Most programs don't call the limiter themselves. `middleware::RateLimitLayer` wraps any Tower
//! service, such as a `reqwest::Client`, reads the key and the cost of each request, and settles by the
//! usage in the response. The [`guide`] explains how to choose keys, algorithms and margins.
//!
//! # Modules
//!
//! ```text
//! request ──▶ estimate ──▶ admit ──▶ send ──▶ observe ──▶ settle
//!            provider     limiter   inner    body and     permit
//!                                   service  headers
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`quota`] | values: dimensions, limits, quotas, costs, usage |
//! | [`engine`] | buckets, and one decision over all buckets of a key; no clock, no locks, no I/O |
//! | [`provider`] | the rules of each provider: charges, usage, headers, errors |
//! | [`limiter`] | the [`Limiter`]: locks, clock, queues and wake-ups |
//! | [`middleware`](./middleware/index.html) | the Tower layer, and its adapters for HTTP clients and servers |
//! | [`store`](./store/index.html) | state across restarts, and between the processes of a machine |
//! | [`cluster`] | state across machines: limits shared through Redis or Valkey, and a bus for 429s |
//! | [`telemetry`](./telemetry/index.html) | metrics of a limiter |
//! | [`config`](./config/index.html) | one YAML file for all of these |
//!
//! A module uses only modules above it in this table.
//!
//! # Guarantees
//!
//! - **Charges as the provider charges.** The charge at admission follows the provider's rule, not the
//!   usage; each [`provider::Profile`] has its own.
//! - **All or nothing.** A request is reserved in every bucket of every key, or in none.
//! - **Within the limit.** If no request uses more than it reserved, the charge never exceeds the limit,
//!   whenever between sending and response the provider charges it.
//! - **Settled once.** A [`Permit`] ends once: settled with the actual cost, released if the request was
//!   never sent, or dropped, which keeps the reservation as the charge.
//! - **Exact waits.** A request that doesn't fit gets the nanosecond at which it will fit if no other
//!   request comes first.
//! - **In order.** Requests for one key are admitted in order of arrival. A big request isn't starved by
//!   small ones, and no request waits behind one that a different key delays.
//! - **Bounded memory.** Keys, queues, windows and scanners of responses are bounded.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `requests` (default) | `Profile::read_request`: the model and cost of a request, images included |
//! | `tower` (default) | `middleware`: the layer around any service; enables `requests` |
//! | `zones` (default) | limits that reset at midnight of any time zone, as Gemini's do; UTC works without it |
//! | `regex` | quotas for keys that match a regular expression |
//! | `hyper-util` | the layer around hyper-util's client |
//! | `reqwest` | the layer around a `reqwest::Client`; `middleware::count_tokens` |
//! | `reqwest-middleware` | the layer as a link of a reqwest-middleware chain |
//! | `axum` | `middleware::respond`: server mode, which answers 429 |
//! | `yaml` | `config` and `Limiter::from_config`; `store::Yaml`: state in a file |
//! | `sqlite` | `store::Sqlite`: state in a database that processes share |
//! | `redis` | `cluster::Shared`: limits shared by machines; `cluster::Redis`: the bus over Redis |
//! | `nats` | `cluster::Nats`: the bus over NATS |
//! | `metrics` | `telemetry`: counters, gauges and histograms through the `metrics` facade |
//! | `tokenizer` | `Profile::with_tokenizer`: exact token counts for OpenAI's models |
//! | `full` | all of them |
//!
//! Without features the crate has no HTTP client and no server, and links 40 crates. Features only add: none
//! changes what is charged. Code that needs a missing feature doesn't compile, or gets an error when a limiter
//! is built or a file is read.
//!
//! TLS to Redis and NATS uses the rustls provider that the program has installed, else ring for these
//! connections only. With `redis` or `nats`, rustls knows two providers, so a program that uses rustls itself
//! with another provider than ring has to install it.
//!
//! The command, the server and the simulated provider are the packages `tollgate-cli`, `tollgate-serve` and
//! `tollgate-simulate`.

extern crate alloc;

mod answer;
mod backend;
mod clock;
#[cfg(all(doctest, feature = "full"))]
mod doc_pages;
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

/// [cluster]: crate::cluster
/// [configuration]: ../config/index.html
// Its examples need all features.
#[cfg_attr(any(not(doctest), feature = "full"), doc = include_str!("../docs/guide.md"))]
pub mod guide {}

#[doc(hidden)]
pub use error_chain::{ErrorChain, causes};
pub use limiter::{Limiter, Permit};
#[cfg(feature = "tower")]
pub use middleware::RateLimitLayer;
pub use quota::{Cost, Key, Quota, Usage};
pub use timestamp::Timestamp;
