//! The Tower layer: a request waits until it fits, is sent, and settles by what its response says.
//!
//! [`RateLimitLayer`] wraps any [`Service`](tower_service::Service) that is `Clone`. What a request
//! costs comes from a [`Classify`], what its response says from an [`Observe`]; [`Http`] is both, for
//! `http` requests and responses and (feature `reqwest`) for reqwest's own.
//!
//! It limits, and with [`retry`](RateLimitLayer::retry) sends again what fails in passing; it doesn't
//! time out or open connections. See [`retry`] for who else sends again.
//!
//! With feature `axum` it guards a service as well: see `respond`.
//!
//! Requests whose bodies are streams go through a [`BufferBodyLayer`] first. With the feature
//! `reqwest-middleware` the layer is a link of a chain as it is. Which errors say that a request
//! never left is known of reqwest, reqwest-middleware and hyper-util (the feature of that name), also
//! in boxes and in other layers of ours; [`find_refusal`] finds ours in theirs.
//!
//! | moment | what happens |
//! |---|---|
//! | `poll_ready` | pending while the layer's [`key`](RateLimitLayer::key) or another [`scope`](RateLimitLayer::scope) of it cools down, has waiters, or lacks the room for a typical request, unless that takes longer than [`max_wait`](RateLimitLayer::max_wait); takes nothing. Then the inner service's own `poll_ready` |
//! | `call` | reads key and cost, or what the request's [`Ask`] says, and takes its reservation under all scopes, or its place in the queue |
//! | waiting | the inner service's readiness is given back; a dropped future leaves the queue |
//! | sending | from here on the request counts as sent, unless it failed to connect, or its future was dropped before it was first polled |
//! | response | limits are read from its headers; a 429, 503 or 529 holds every other request of the key, and reduces it once its body was read or dropped, unless that says that waiting doesn't help |
//! | body | its usage is read as it passes, bytes unchanged; at its end, its error or its drop the reservation settles. What was cut off before its final usage keeps the output that was reserved |
//!
//! A body that passes compressed can't be read: what was reserved for its request counts, and the
//! [`Journey`] says so ([`Facts::unread`]). Let the client below decompress: `gzip` and the like of
//! reqwest, `DecompressionLayer` of tower-http inside this layer. Streams in OpenAI's format tell
//! their usage only to those who ask: [`IncludeUsageLayer`] does. Where output is charged as it was
//! (Anthropic, and whoever charges by usage), what earlier requests of a key have put out is
//! reserved for the next. Input settles with the output, at the end of a response, also where the
//! provider charges it at the first usage.
//!
//! Each try of a request to a provider is a span of `tracing`, `gen_ai.client.operation` of the target
//! `tollgate::request` at level `INFO`, in OpenTelemetry's names (`telemetry`, with feature `metrics`,
//! lists its fields). It is entered wherever the client below works on the request and its body, and
//! costs a few loads where nobody collects it.
//!
//! Among tower's other layers: see [`composition`].
//!
//! ```
//! use tollgate::limiter::Limiter;
//! use tollgate::middleware::RateLimitLayer;
//! use tollgate::provider::OPENAI;
//! use tower::{Layer, Service, ServiceExt, service_fn};
//!
//! # async fn send(_: http::Request<String>) -> Result<http::Response<http_body_util::Full<bytes::Bytes>>, std::convert::Infallible> {
//! #     Ok(http::Response::new("{}".into()))
//! # }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let limiter = Limiter::builder().provider(OPENAI).build()?;
//! let mut client = RateLimitLayer::new(limiter).layer(service_fn(send));
//!
//! let body = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;
//! let request = http::Request::post("/v1/chat/completions").body(body.to_owned())?;
//! let response = client.ready().await?.call(request).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[doc = include_str!("composition.md")]
pub mod composition {}

mod ask;
mod body;
mod buffer_body;
mod buffered_body;
mod charge;
mod classify;
mod error;
mod future;
mod http;
mod include_usage;
mod journey;
mod layer;
mod learned;
mod observe;
mod passing;
mod peek;
mod read_ahead;
mod reading;
mod record;
mod refusal;
mod response_guard;
mod scope_key;
mod service;
mod settings;
mod unsent;

pub mod retry;

#[cfg(feature = "axum")]
pub mod respond;

#[cfg(feature = "reqwest")]
mod count_tokens;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "reqwest-middleware")]
mod reqwest_middleware;

pub use ask::Ask;
pub use body::ResponseBody;
pub use buffer_body::{BufferBody, BufferBodyFuture, BufferBodyLayer};
pub use buffered_body::BufferedBody;
pub use charge::Charge;
pub use classify::{Classified, Classify};
#[cfg(feature = "reqwest")]
pub use count_tokens::{SendCountError, count_tokens};
pub use error::{BoxError, RateLimitError};
pub use future::ResponseFuture;
pub use http::Http;
pub use include_usage::{IncludeUsage, IncludeUsageLayer, Rewrite};
pub use journey::{Facts, Journey};
pub use layer::{Once, RateLimitLayer, Retries};
pub use observe::Observe;
pub use peek::PeekBody;
pub use reading::Reading;
#[cfg(feature = "reqwest")]
pub use reqwest::ReqwestJudging;
#[cfg(feature = "reqwest-middleware")]
pub use reqwest_middleware::ChainedRequest;
pub use response_guard::ResponseGuard;
pub use retry::{Judge, Judged, Judging, Replay, RetryFuture, RetryService, Verdict};
pub use scope_key::ScopeKey;
pub use service::RateLimitService;
pub use unsent::{Unsent, find_refusal};
