//! A Tower layer that applies rate limits: it queues each request until its limits allow it, sends it,
//! and settles its reservation with the usage that the response reports.
//!
//! ```
//! use paceline::limiter::Limiter;
//! use paceline::middleware::RateLimitLayer;
//! use paceline::provider::OPENAI;
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
//!
//! [`RateLimitLayer`] wraps any [`Service`](tower_service::Service) that is `Clone`. A [`Classify`]
//! determines the cost of a request and an [`Observe`] reads its response. [`Http`] implements both
//! for `http` requests and responses and, with feature `reqwest`, for those of reqwest. With feature
//! `reqwest-middleware` the layer is also a middleware of reqwest-middleware, and with feature `axum`
//! it limits the requests that a server receives: see `respond`.
//!
//! The layer doesn't time out requests or open connections. It retries transient failures if
//! [`RateLimitLayer::retry`] is set; see [`retry`] for its interaction with other retry layers, and
//! [`composition`] for the order among other Tower layers. Add a [`BufferBodyLayer`] outside the layer
//! for requests with streaming bodies.
//!
//! # Steps of a request
//!
//! | step | behavior |
//! |---|---|
//! | `poll_ready` | Pending while the layer's [`key`](RateLimitLayer::key) or another [`scope`](RateLimitLayer::scope) is paused, has waiters, or lacks quota for a typical request, unless the wait would exceed [`max_wait`](RateLimitLayer::max_wait), and while as many requests of the layer wait as [`max_waiting`](RateLimitLayer::max_waiting) allows. Consumes no quota. Then polls the inner service's `poll_ready`. |
//! | `call` | Determines the key and the cost, or takes them from the request's [`Ask`]. Reserves the cost under all scopes, or queues the request. |
//! | queue | The readiness of the inner service is released. Dropping the future removes the request from the queue. |
//! | send | The request counts as sent, unless the connection failed or the future was dropped before its first poll. |
//! | response | Limits are read from the headers. A 429, 503 or 529 pauses the other requests of the key for at most 5 s; after its body was read or dropped, the key reacts to the [kind](crate::provider::RefusalKind) of the refusal. |
//! | body | The usage is read while the bytes are forwarded unchanged. The reservation is settled when the body ends, fails or is dropped. A stream that ends without its last event, however the connection ends, is charged for what was received where the provider stops to generate and the stream shows all that it generates ([`CutStreams`](crate::provider::CutStreams)); otherwise at least the reserved output is charged. A response without a body (also to HEAD) settles at once, and that of an upgrade (101) when its [`ActualCost`] is dropped. |
//!
//! The layer releases the reservation of a request that was not sent. It recognizes this from the
//! errors of reqwest, reqwest-middleware and (feature `hyper-util`) hyper-util, also if they are boxed
//! or wrapped by another [`RateLimitLayer`]. [`find_refusal`] finds the limiter's error inside a
//! client's error.
//!
//! # Usage
//!
//! - The usage of a compressed body can't be read: the reserved cost is charged, and the [`Journey`]
//!   names the encoding ([`Facts::unread`]). Enable decompression in the inner client: `gzip` and the
//!   other features of reqwest, or `DecompressionLayer` of tower-http inside this layer.
//! - Streams in OpenAI's format report usage only on request: add an [`IncludeUsageLayer`].
//! - If the provider charges the actual output (as Anthropic does), the layer reserves the output that
//!   earlier requests of the key have generated.
//! - If the provider charges input when a response starts (as Anthropic does), the layer settles the
//!   input at the first usage of a stream, and the output at its end.
//!
//! # Tracing
//!
//! Each attempt of a request to a provider is a `tracing` span, `gen_ai.client.operation` with target
//! `paceline::request` at level `INFO`, with OpenTelemetry's field names (`telemetry`, with feature
//! `metrics`, lists them). It is entered while the inner client works on the request or its body. If
//! no subscriber collects it, it costs a few atomic loads.
//!
//! # Compile errors
//!
//! If the layer cannot classify the requests or observe the responses of the inner service, the
//! wrapped service doesn't implement `Service`. For a method call, rustc reports only that the method
//! is missing, and doesn't show the notes of [`Classify`] and [`Observe`]:
//!
//! ```text
//! error[E0599]: the method `ready` exists for struct `RateLimitService<...>`, but its trait bounds were not satisfied
//! error[E0599]: the method `oneshot` exists for struct `RateLimitService<...>`, but its trait bounds were not satisfied
//! error[E0599]: no method named `call` found for struct `RateLimitService<S, C, O>` in the current scope
//! ```
//!
//! To see the missing bound with its notes, call the method as a function, for example
//! `ServiceExt::oneshot(client, request)`:
//!
//! ```text
//! error[E0277]: the rate-limit layer cannot determine the cost of a `http::Request<...>`
//! ```
//!
//! | inner service | solution |
//! |---|---|
//! | an HTTP client whose request body doesn't implement [`PeekBody`], for example a stream | add a [`BufferBodyLayer`] outside the [`RateLimitLayer`] |
//! | an axum router, or another HTTP server | use server mode: `RateLimitLayer::new(limiter).respond()` (feature `axum`) |
//! | a service that isn't HTTP | set [`classify`](RateLimitLayer::classify) and [`observe`](RateLimitLayer::observe) |
//! | any service that isn't `Clone`, or whose error isn't `Into<BoxError>` | wrap it in `tower::buffer::Buffer`, or convert its error with `map_err` |
//!
//! A request with a streaming body, without a [`BufferBodyLayer`]:
//!
//! ```compile_fail,E0599
//! use bytes::Bytes;
//! use http_body_util::combinators::BoxBody;
//! use paceline::{Limiter, middleware::RateLimitLayer};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! type Body = BoxBody<Bytes, std::io::Error>;
//!
//! async fn send(_: http::Request<Body>) -> Result<http::Response<Body>, std::io::Error> {
//!     unimplemented!()
//! }
//!
//! async fn example(limiter: Limiter, request: http::Request<Body>) {
//!     let client = RateLimitLayer::new(limiter).layer(service_fn(send));
//!     let _ = client.oneshot(request).await;
//! }
//! ```

#[doc = include_str!("composition.md")]
pub mod composition {}

mod actual_cost;
mod ask;
mod body;
mod buffer_body;
mod buffered_body;
mod call;
mod classify;
mod cut_stream;
mod error;
mod error_body;
mod failed_response;
mod forwarding_body;
mod future;
mod http;
mod include_usage;
mod journey;
mod late_cost;
mod layer;
mod observe;
mod peek;
mod queue_slots;
mod read_ahead;
mod reading;
mod record;
mod refused_response;
mod response_guard;
mod response_head;
mod scope_key;
mod server_failure;
mod service;
mod settings;
mod typical_cost;
mod unsent;
mod usage_chunk;

pub mod retry;

#[cfg(feature = "axum")]
pub mod respond;

#[cfg(feature = "reqwest")]
mod account_limits;
#[cfg(feature = "reqwest")]
mod count_tokens;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "reqwest-middleware")]
mod reqwest_middleware;

#[cfg(feature = "reqwest")]
pub use account_limits::{AccountLimitsError, fetch_account_limits, follow_account_limits};
pub use actual_cost::ActualCost;
pub use ask::Ask;
pub use body::ResponseBody;
pub use buffer_body::{BufferBody, BufferBodyFuture, BufferBodyLayer};
pub use buffered_body::BufferedBody;
pub use classify::{Classified, Classify};
#[cfg(feature = "reqwest")]
pub use count_tokens::{SendCountError, count_tokens};
pub use error::{BoxError, RateLimitError};
pub use future::ResponseFuture;
pub use http::Http;
pub use include_usage::{IncludeUsage, IncludeUsageLayer, Rewrite, request_usage};
pub use journey::{Facts, Journey};
pub use layer::{Once, RateLimitLayer, Retries};
pub use observe::Observe;
pub use peek::PeekBody;
pub use reading::Reading;
#[cfg(feature = "reqwest")]
pub use reqwest::{ReqwestJudging, map_reqwest_body};
#[cfg(feature = "reqwest-middleware")]
pub use reqwest_middleware::ChainedRequest;
pub use response_guard::ResponseGuard;
pub use retry::{Judge, Judged, Judging, Replay, RetryFuture, RetryService, Verdict};
pub use scope_key::ScopeKey;
pub use server_failure::ServerFailure;
pub use service::RateLimitService;
pub use unsent::{Unsent, find_refusal};
pub use usage_chunk::WithoutUsageChunk;
