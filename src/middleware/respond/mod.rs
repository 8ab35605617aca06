//! Server mode: the layer as the guard of a service's own endpoints.
//!
//! A client can wait; a server has to answer.
//! [`RateLimitLayer::respond`](crate::middleware::RateLimitLayer::respond) makes a layer that answers
//! who is over the limit itself, fails only if the service inside does, and so goes into
//! `axum::Router::layer` (or around any service over `http` types) without a wrapper:
//!
//! ```
//! use axum::{Router, routing::get};
//! use tollgate::quota::Margin;
//! use tollgate::middleware::respond::Scope;
//! use tollgate::{Limiter, Quota, RateLimitLayer};
//!
//! let limiter = Limiter::builder()
//!     .quota("peer:*", Quota::new().rpm(60)) // for each address
//!     .quota("service", Quota::new().rpm(6_000).concurrency(500)) // for all together
//!     .margin(Margin::NONE)
//!     .build()?;
//! let limit = RateLimitLayer::new(limiter).respond().scope(Scope::peer()).scope("service");
//! let app: Router = Router::new().route("/", get(async || "Hello, world!")).layer(limit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | question | answer |
//! |---|---|
//! | whose request? | its [`Scope`]s: header, path, route, address, extension, closure. All of them let it in, or none is charged |
//! | what does it cost? | one request; tokens by [`cost`](RespondLayer::cost). Bodies aren't read |
//! | how long does it wait? | not at all, or up to [`max_wait`](RespondLayer::max_wait). `poll_ready` never waits for quota |
//! | what did it take? | what was reserved, or what [`charge`](RespondLayer::charge) or a [`Charge`](crate::middleware::Charge) in the response's extensions says |
//! | when does it end? | with its response's body: at the end, at an error, or when it is dropped. Until then it counts as in flight |
//! | may a layer further out decide? | an [`Ask`](crate::middleware::Ask) in the request's extensions sets key (of the first scope), cost and deadline |
//!
//! # What a client is told
//!
//! Each answer carries `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-11
//! (May 2026) has them, appended to any that the service itself has set: one policy for each limit of
//! each scope, named after both, such as `"peer-rpm"`.
//!
//! ```text
//! RateLimit-Policy: "peer-rpm";q=60;w=60, "service-rpm";q=6000;w=60, "service-concurrency";q=500;qu="concurrent-requests"
//! RateLimit: "peer-rpm";r=59;t=59, "service-rpm";r=5999;t=60, "service-concurrency";r=499
//! ```
//!
//! `q` is the limit, `w` its window where that is whole seconds, `r` what is left. `t` says for how
//! many seconds `r` should last: until the limit is unused again, and never so few that `r` would come
//! faster than the limit's own pace. `qu` is the unit: none for requests, `concurrent-requests`, and
//! for the rest the dimension's name (`tokens`), which the draft's registry doesn't hold. Partition
//! keys (`pk`) aren't sent: they could be secrets.
//!
//! A scope's key is `name:value`, the name of a header in lower case; quotas are given for it by
//! glob (`x-api-key:*`). A key that no quota names isn't limited, which the limiter logs once; with
//! `UnknownKey::Refuse` it is refused. The limiter of a server needs no margin: with one, waits are
//! longer than the limits say.
//!
//! A refused client gets a problem document (RFC 9457) besides, of the draft's type `quota-exceeded`
//! where a limit falls short: `code`, `dimension`, `key` (unless it may be a secret),
//! `violated-policies`, and `retry_after`, the same seconds as `Retry-After`, rounded up.
//!
//! | refused because | status | `Retry-After` |
//! |---|---|---|
//! | a limit falls short, or the key cools down | 429 | until it fits, if nobody else comes |
//! | requests in flight or in the queue come first; the queue is full | 429 | 1: nobody knows |
//! | it costs more than a limit ever holds; unknown keys are refused | 429 | none: it is no use |
//! | no limit of the key counts a dimension of the cost | 422 | none |
//! | the limiter keeps as many keys as it may | 503 | 1 |
//! | the limiter is closed | 503 | none |
//!
//! # What it doesn't do
//!
//! It doesn't authenticate: a client can make up header values as it likes, and each is a key of its
//! own. Put it inside the layer that does, or limit by address too.

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
pub use refusal::{describe, refusal};
pub use reply::Reply;
pub use scope::Scope;
pub use scopes::Scopes;
pub use service::Respond;
