//! Server mode: rate limiting for a service's own endpoints.
//!
//! [`RateLimitLayer::respond`](crate::middleware::RateLimitLayer::respond) returns a layer that answers
//! requests over the limit itself and fails only if the inner service fails. It therefore fits
//! `axum::Router::layer`, or any service over `http` types, without an error handler:
//!
//! ```
//! use axum::{Router, routing::get};
//! use paceline::quota::Margin;
//! use paceline::middleware::respond::Scope;
//! use paceline::{Limiter, Quota, RateLimitLayer};
//!
//! let limiter = Limiter::builder()
//!     .quota("peer:*", Quota::new().rpm(60)) // per address
//!     .quota("service", Quota::new().rpm(6_000).concurrency(500)) // for all clients together
//!     .margin(Margin::NONE)
//!     .build()?;
//! let limit = RateLimitLayer::new(limiter).respond().scope(Scope::peer()).scope("service");
//! let app: Router = Router::new().route("/", get(async || "Hello, world!")).layer(limit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | aspect | behavior |
//! |---|---|
//! | key | one per [`Scope`]: header, path, route, address, extension or closure. A request is admitted if all scopes admit it; otherwise no scope is charged |
//! | cost | one request; tokens as returned by [`cost`](RespondLayer::cost). Bodies aren't read |
//! | wait | none, or up to [`max_wait`](RespondLayer::max_wait). `poll_ready` never waits for quota |
//! | charge | the reserved cost, unless [`charge`](RespondLayer::charge) or an [`ActualCost`](crate::middleware::ActualCost) in the response's extensions states the actual one |
//! | end of a request | the end of the response body, an error in it, or its drop. Until then the request counts as in flight. An upgraded connection (101, a WebSocket) counts until the last clone of the [`ActualCost`](crate::middleware::ActualCost) in the response's extensions is dropped: insert one, and keep a clone with the connection. Without one, the request ends when the head of the response has been sent |
//! | overrides by outer layers | an [`Ask`](crate::middleware::Ask) in the request's extensions sets the key (of the first scope), the cost and the deadline |
//!
//! # Responses
//!
//! Each response carries `RateLimit-Policy` and `RateLimit` as defined by
//! draft-ietf-httpapi-ratelimit-headers-11 (May 2026), appended to any values that the service itself
//! has set. Each limit of each scope is a policy, named after both, such as `"peer-rpm"`.
//!
//! ```text
//! RateLimit-Policy: "peer-rpm";q=60;w=60, "service-rpm";q=6000;w=60, "service-concurrency";q=500;qu="concurrent-requests"
//! RateLimit: "peer-rpm";r=59;t=59, "service-rpm";r=5999;t=60, "service-concurrency";r=499
//! ```
//!
//! - `q` is the limit, and `w` its window if that is a whole number of seconds.
//! - `r` is the remaining amount, and `t` the effective window: the seconds over which a client should
//!   spread that amount. It lasts until the limit is unused again, and at least as long as the limit takes
//!   to refill `r`.
//! - `qu` is the unit: absent for requests, `concurrent-requests` for requests in flight, and otherwise the
//!   name of the dimension (`tokens`), which the draft's registry doesn't contain.
//! - Partition keys (`pk`) aren't sent, since they could be secrets.
//!
//! The key of a scope is `name:value`, with header names in lower case. Globs of quotas match it
//! (`x-api-key:*`). A key without a quota isn't limited, which the limiter logs once; with
//! `UnknownKey::Refuse` it is refused. Use [`Margin::NONE`](crate::quota::Margin::NONE) for the limiter
//! of a server: a margin makes waits longer than the limits require.
//!
//! A response to a refused request also has a problem document (RFC 9457) as its body. Its type is the
//! draft's `quota-exceeded` if a limit is exceeded. Its members are `code`, `dimension`, `key` (unless
//! the key may be a secret), `violated-policies`, and `retry_after`, in seconds, rounded up, equal to
//! `Retry-After`.
//!
//! | reason | status | `Retry-After` |
//! |---|---|---|
//! | a limit is exceeded, or the key cools down | 429 | time until the request fits, without other requests |
//! | requests in flight or queued come first; the wait queue is full | 429 | 1, since the wait is unknown |
//! | the cost exceeds the capacity of a limit; unknown keys are refused | 429 | none, since a retry cannot succeed |
//! | no limit of the key counts a dimension of the cost | 422 | none |
//! | the limiter holds its maximum number of keys | 503 | 1 |
//! | the limiter is closed | 503 | none |
//!
//! # Authentication
//!
//! The layer doesn't authenticate. A client can send any header value, and each value is a separate
//! key. Place the layer inside the one that authenticates, or limit by address as well.

mod body;
mod fields;
mod future;
mod head;
mod layer;
mod peer;
mod policies;
mod refusal;
mod reply;
mod scope;
mod scopes;
mod service;
mod text;

pub use body::RespondBody;
pub use future::RespondFuture;
pub use head::Head;
pub use layer::RespondLayer;
pub use peer::{InvalidNetwork, Proxies};
pub use refusal::{append_headers, refusal};
pub use reply::Reply;
pub use scope::Scope;
pub use scopes::Scopes;
pub use service::Respond;
