//! Retries of transient failures.
//!
//! [`RateLimitLayer::retry`](super::RateLimitLayer::retry) returns a layer for a [`RetryService`]. Each
//! attempt waits in the limiter's queue and is charged as a separate request. Before a retry, the
//! provider's refusal is reported to the limiter, so that other requests of the same key wait too. A
//! retry layer around or inside the rate-limit layer cannot do that.
//!
//! | result of an attempt | handling |
//! |---|---|
//! | status 400 or above | reads the body ahead, up to 64 KiB and 5 s; the first 16 KiB determine the [class](crate::provider::Class) and the delay |
//! | a refusal for a rate, or for a long window whose end is known | if it holds back the key, the request enters the queue immediately, in front of new ones. If it concerns this request alone, since others are accepted, the request waits for the delay that the provider states, or for a back-off |
//! | a refusal for lack of capacity (503, 529, and others that say so) | only the request waits, as after another transient failure |
//! | another transient failure (408, 409, 425, 5xx, `x-should-retry: true`) | only the request waits, for a `retry-after` of up to a minute or for a back-off: 0.5 s, doubled each time up to 8 s, minus a random part of up to a quarter; then it enters the queue |
//! | a permanent failure: a refusal of the request or the account, a used-up window whose end is unknown, an invalid request, `x-should-retry: false` | returned to the caller |
//! | a success that begins with an error: the first event of a stream in any format, except those of the Responses API before the output, or a JSON object; a stream that breaks off before its first event | retried like an error with that code. The head waits for the first event or object, for at most 16 KiB and 5 s. What isn't billed, such as a stored response, isn't read |
//! | another success | returned and never retried, even if an error follows in its stream. With [`Http::whole`](super::Http::whole) the body is first read to its end; an error in it, a truncated body and an [invalid body](crate::provider::InvalidAnswer) are transient failures |
//! | a client error before the request was sent, such as a failed connection | retried after a back-off; not charged |
//! | any other client error | returned to the caller, since the provider may have served the request |
//!
//! Each attempt after the first one uses up a retry, whatever the failure. While a provider is overloaded, attempts
//! wait in the queue, and one at a time tests it; with [`wait_for_server`](super::RateLimitLayer::wait_for_server) also while
//! a server can't be reached.
//!
//! No wait exceeds the request's deadline or [`max_wait`](super::RateLimitLayer::max_wait), which count
//! from the first attempt. A longer delay ends the retries, and reading ahead stops at the deadline. Without
//! either, the total wait is unbounded, as it is for other requests in the queue.
//!
//! If no further attempt follows, the caller gets the last result unchanged: head, body, trailers or
//! error. Until then the layer keeps it, with up to 64 KiB and one frame of its body in memory (all of it with
//! [`Http::whole`](super::Http::whole)). Its connection is released, unless the error body is longer than
//! that or takes more than 5 s.
//!
//! Only requests that can be [replayed](Replay) are retried: those with a body in memory
//! ([`PeekBody::replay`](super::PeekBody::replay)). A stream is sent only once, unless a
//! [`BufferBodyLayer`](super::BufferBodyLayer) has read it into memory. Server mode doesn't retry.
//!
//! The layer clones the body before the first attempt. `Bytes`, `Full<Bytes>`, a `BufferedBody` and the
//! bodies of `reqwest::Request` share their memory, while a `String`, a `Vec<u8>` or a `reqwest::Body` in
//! an `http` request is copied. Prefer `Bytes` or `Full<Bytes>` for long bodies.
//!
//! ```
//! use paceline::middleware::RateLimitLayer;
//! use tower::{Layer, ServiceExt, service_fn};
//! # use std::sync::atomic::{AtomicU32, Ordering};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
//! # runtime.block_on(async {
//! # let clock = paceline::limiter::TokioClock::new();
//! # let limiter = paceline::Limiter::builder().clock(clock).build()?;
//! let busy = AtomicU32::new(2);
//! let provider = service_fn(|_: http::Request<String>| async {
//!     let mut answer = http::Response::new("{}".to_owned());
//!     if busy.fetch_sub(1, Ordering::Relaxed) > 0 {
//!         *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
//!     }
//!     Ok::<_, std::convert::Infallible>(answer)
//! });
//! let client = RateLimitLayer::new(limiter).retry(2).layer(provider);
//! let request = http::Request::post("/v1/embeddings").body("{}".to_owned())?;
//! assert_eq!(client.oneshot(request).await?.status(), 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Retries of other clients and layers
//!
//! The layer doesn't charge retries that bypass it:
//!
//! | client or layer | retries | recommendation |
//! |---|---|---|
//! | the SDKs of OpenAI and Anthropic, in any language | `max_retries`, 2 unless set: on 408, 409, 429, 5xx and broken connections | with `paceline` as a proxy, set it to 0, or expect up to three times the requests |
//! | async-openai | with an `OpenAIRetryLayer` or a retry policy around its service | put the rate-limit layer below that (`with_http_service`), so that each attempt is charged |
//! | `reqwest::Client` | requests that an HTTP/2 server has rejected (`REFUSED_STREAM`, `GOAWAY`), and those selected by a policy given to `ClientBuilder::retry` | rejected requests were not served; set no policy for the provider's host |
//! | hyper-util's client, and therefore reqwest | requests on an idle connection that turned out to be closed (`retry_canceled_requests`, on by default) | such requests were not served |
//! | `reqwest-retry` | on 408, 429, 5xx and connection errors | add the rate-limit layer after it, so that each attempt is charged, or use `retry` instead |
//! | `tower::retry` | requests selected by its policy | put it around the rate-limit layer, never inside |
//! | redirects (`reqwest` follows ten) | one request becomes two | LLM APIs send none; `redirect::Policy::none()` reveals a wrong base URL |

mod backoff;
mod future;
mod judge;
mod judging;
mod remaining_retries;
mod replay;
mod service;
mod stage;

pub use future::RetryFuture;
pub use judge::{Judge, Judged, Verdict};
pub use judging::Judging;
pub use replay::Replay;
pub use service::RetryService;
