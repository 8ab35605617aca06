//! A rate limiter for LLM APIs: requests queue and go out as soon as the provider's limits allow.
//!
//! [`RateLimitLayer`](./middleware/struct.RateLimitLayer.html) wraps a Tower service, such as a
//! `reqwest::Client` (feature `reqwest`). It reads the model of each request, estimates the cost as the
//! provider does, queues the request until the limits of the model allow it, and sends it. When the
//! response ends, it settles the reservation with the actual cost.
//!
#![cfg_attr(feature = "reqwest", doc = "```no_run")]
#![cfg_attr(not(feature = "reqwest"), doc = "```ignore")]
//! use paceline::{Limiter, Quota, RateLimitLayer, provider::OPENAI};
//! use tower::{Layer, ServiceExt};
//!
//! # async fn example(api_key: &str) -> Result<(), Box<dyn std::error::Error>> {
//! // 500 requests and 30,000 tokens per minute.
//! let quota = Quota::new().rpm(500).tpm(30_000);
//! let limiter = Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build()?;
//! let http = reqwest::Client::new();
//! let client = RateLimitLayer::new(limiter).layer(http.clone());
//!
//! let body = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let request = http.post("https://api.openai.com/v1/chat/completions").bearer_auth(api_key);
//! let response = client.oneshot(request.body(body).build()?).await?;
//! # drop(response);
//! # Ok(())
//! # }
//! ```
//!
//! A program without a Tower service calls the [`Limiter`] itself:
//!
//! ```
//! use paceline::{Cost, Limiter, Quota};
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
//! The [`guide`] explains how to choose keys, algorithms and margins.
//!
//! # Modules
//!
//! Each request passes through these steps:
//!
//! ```text
//! request ──▶ estimate ──▶ admit ──▶ send ──▶ observe ──▶ settle
//!            provider     limiter   inner    body and     permit
//!                                   service  headers
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`guide`] | the user guide |
//! | [`quota`] | dimensions, limits, quotas, costs and usage |
//! | [`engine`] | buckets, and the admission decision over all buckets of a key; no clock, locks or I/O |
//! | [`provider`] | the rules of each provider: costs, usage, headers and errors |
//! | [`price`] | the prices of models, for limits on spending |
//! | [`limiter`] | the [`Limiter`]: admission, queues, clocks and events |
//! | [`middleware`] | the Tower layer, and its adapters for HTTP clients and servers |
//! | [`store`](./store/index.html) | state that survives restarts and is shared by the processes of a machine |
//! | [`cluster`](./cluster/index.html) | limits shared by machines through Redis or Valkey, and a bus that announces 429s |
//! | [`telemetry`](./telemetry/index.html) | metrics of a limiter |
//!
//! # Guarantees
//!
//! - **Charged by the provider's rule.** The cost of a request follows the rule of its provider, which a
//!   [`provider::Profile`] defines. OpenAI, for example, charges the size of the prompt and `max_tokens`,
//!   and not the actual usage.
//! - **All or nothing.** The cost is reserved in every bucket of every key of a request, or in none.
//! - **Within the limit.** If no request uses more than it reserved, the provider never counts more than
//!   its limit, at whatever time between sending and response it counts a request.
//! - **Settled once.** A [`Permit`] ends exactly once: it is settled with the actual cost, released if the
//!   request was never sent, or dropped, in which case the reserved cost is charged.
//! - **Exact waits.** A refusal states the time at which the request will fit if no other request comes
//!   first, to the nanosecond.
//! - **In order.** Requests for one key are admitted in order of arrival, so that small requests don't starve
//!   a large one. No request waits behind one that a different key delays.
//! - **Bounded memory.** Keys, queues, windows and the buffers for responses have maximum sizes.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `zones` (default) | limits that reset at midnight in any time zone, as Gemini's do; without it, only in UTC |
//! | `regex` | quotas for keys that match a regular expression |
//! | `hyper-util` | recognizes the errors of hyper-util's client after which a request isn't charged |
//! | `reqwest` | the layer around a `reqwest::Client`; `middleware::count_tokens` |
//! | `reqwest-middleware` | the layer as a middleware of reqwest-middleware |
//! | `axum` | `middleware::respond`: rate limiting for an axum service's own endpoints |
//! | `yaml` | `store::Yaml`: state in a YAML file |
//! | `sqlite` | `store::Sqlite`: state in a SQLite database that processes share |
//! | `cluster` | `cluster`: the bus that announces 429s, within a process |
//! | `redis` | `cluster::Shared`: limits that machines share; `cluster::RedisBus`: the bus over Redis |
//! | `nats` | `cluster::NatsBus`: the bus over NATS |
//! | `metrics` | `telemetry`: counters, gauges and histograms through the `metrics` facade |
//! | `tokenizer` | `Profile::with_tokenizer`: exact token counts for OpenAI's models |
//! | `full` | all of the above |
//!
//! Features are additive: none changes what is charged. Code that needs a missing feature doesn't compile, or
//! gets an error when a limiter is built. Without features the crate contains no HTTP client
//! and no server, and has 47 dependencies.
//!
//! The modules are packages of their own, whose paths are the same in this one; their examples name them.
//! [`quota`], [`engine`] and [`limiter`] are `paceline-limiter`, which knows no HTTP and no provider, and has 33
//! dependencies without features. [`provider`] is `paceline-provider`, and [`price`] a module of it;
//! [`store`](./store/index.html) is `paceline-store`, and [`cluster`](./cluster/index.html) `paceline-cluster`.
//!
//! Connections to Redis and NATS with TLS use the rustls crypto provider that the program has installed, or
//! else ring for these connections only. The features `redis` and `nats` enable rustls' ring provider. A
//! program that uses rustls with another provider must then install that one as the default of the process,
//! since rustls doesn't choose between two.
//!
//! Packages above this one are the configuration in one YAML file, the command, the server and the simulated provider:
//! `paceline-config`, `paceline-cli`, `paceline-serve` and `paceline-simulate`.

#[cfg(all(doctest, feature = "full"))]
mod doc_pages;
mod error_chain;
pub mod middleware;

#[cfg(feature = "metrics")]
pub mod telemetry;

/// The user guide.
///
/// [cluster]: ../cluster/index.html
/// [configuration]: https://docs.rs/paceline-config
///
// Its examples need all features.
#[cfg_attr(any(not(doctest), feature = "full"), doc = include_str!("../docs/guide.md"))]
pub mod guide {}

#[doc(hidden)]
pub use error_chain::{ErrorChain, causes};
pub use middleware::RateLimitLayer;
#[cfg(feature = "cluster")]
#[doc(inline)]
pub use paceline_cluster as cluster;
pub use paceline_limiter::{
    Cost, Key, Limiter, Permit, Quota, Timestamp, Usage, engine, limiter, quota,
};
#[doc(inline)]
pub use paceline_provider as provider;
pub use paceline_provider::price;
#[cfg(any(feature = "yaml", feature = "sqlite"))]
#[doc(inline)]
pub use paceline_store as store;
