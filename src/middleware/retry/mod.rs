//! Sending again what fails in passing.
//!
//! [`RateLimitLayer::retry`](super::RateLimitLayer::retry) makes a [`RetryService`]. Each try waits in
//! the limiter's queue and is charged as a request of its own, and the limiter is told of a refusal
//! before, so that the others of its key wait as well. That is what a retry around the layer, or
//! inside it, can't do.
//!
//! | a try comes to | what happens |
//! |---|---|
//! | a status from 400 on | its body is read ahead, until more than 64 KiB have come or 5 s have passed; its beginning of 16 KiB tells its [class](crate::provider::Class) and delay |
//! | 429, 503, 529 | the limiter holds the key for the delay that the provider asks for (`retry-after-ms`, `retry-after`, a text in the body); the request queues at once. Without a delay, or with one of nothing, it waits for a back-off first |
//! | another failure in passing (408, 409, 425, 5xx, `x-should-retry: true`) | the request waits by itself, for its `retry-after` of up to a minute or a back-off: half a second, twice as long each time, at most 8 s, less up to a quarter at random; then it queues |
//! | a limit of a day | waited for where it is known for how long (a day at most), in the time there is |
//! | what would fail again: no credit, a bad key, a wrong request, `x-should-retry: false` | handed out |
//! | a success | handed out as it comes, never sent again, whatever its stream says later; with [`Http::whole`](super::Http::whole) it is read to its end first; one with an error in it, or that is [no answer](crate::provider::InvalidAnswer) at all, failed in passing |
//! | an error of the client that says that nothing left (no connection) | sent again, after a back-off; charged nothing |
//! | any other error of the client | handed out: the request may have been served |
//!
//! The wait never goes past the request's deadline or [`max_wait`](super::RateLimitLayer::max_wait),
//! which count from the first try: a delay that would is not waited for, and no answer is read ahead
//! for longer. Without either nothing bounds the wait over all tries, as nothing bounds that of the
//! others in the queue: a limit of a day holds them all.
//!
//! Where no other try follows, the caller gets what the last one came to, unchanged: head, every
//! byte, trailers or error. Until then it is kept, with up to 64 KiB and one frame of its body in
//! memory (all of it with [`Http::whole`](super::Http::whole)); its connection is free again, but for
//! an error that is longer than that or has not ended in 5 s.
//!
//! Only what can be [replayed](Replay) is sent again: a request whose body is in memory
//! ([`PeekBody::replay`](super::PeekBody::replay)). A stream is sent once, unless a
//! [`BufferBodyLayer`](super::BufferBodyLayer) has read it whole. Server mode sends nothing again.
//! The body for the next try is put by before the first: `Bytes`, `Full<Bytes>`, a `BufferedBody` and
//! reqwest's own requests share theirs, while a `String`, a `Vec<u8>` or a `reqwest::Body` in an `http`
//! request is copied, for each request. Where bodies are long give `Bytes` or `Full<Bytes>`.
//!
//! ```
//! use tollgate::middleware::RateLimitLayer;
//! use tower::{Layer, ServiceExt, service_fn};
//! # use std::sync::atomic::{AtomicU32, Ordering};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
//! # runtime.block_on(async {
//! # let clock = tollgate::limiter::TokioClock::new();
//! # let limiter = tollgate::Limiter::builder().clock(clock).build()?;
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
//! # Hidden resends
//!
//! Below and around the layer others send again too, and what it doesn't see it doesn't charge:
//!
//! | who | what it does | with the layer |
//! |---|---|---|
//! | the SDKs of OpenAI and Anthropic, in any language | `max_retries`, 2 unless set: on 408, 409, 429, 5xx and broken connections | talking to `tollgate` as a proxy, set it to 0, or count three times the requests |
//! | async-openai | sends again where an `OpenAIRetryLayer` or a retry policy is around its service | put the layer below that (`with_http_service`): each try passes it |
//! | `reqwest::Client` | sends again what an HTTP/2 server has refused to take (`REFUSED_STREAM`, `GOAWAY`), and whatever a policy given to `ClientBuilder::retry` says | what was refused so was not served; give it no policy for the provider's host |
//! | hyper-util's client, and so reqwest | sends a request again that was queued on an idle connection that turned out closed (`retry_canceled_requests`, on unless set) | nothing of it was served |
//! | `reqwest-retry` | on 408, 429, 5xx and connection errors | put the layer inside (`with` it later): each attempt is charged; or leave it out, and `retry` here |
//! | `tower::retry` | what its policy says | put it around the layer, never inside |
//! | redirects (`reqwest` follows ten) | one request becomes two | APIs answer none; `redirect::Policy::none()` shows a wrong base URL |

mod again;
mod backoff;
mod future;
mod judge;
mod judging;
mod replay;
mod service;

pub use future::RetryFuture;
pub use judge::{Judge, Judged, Verdict};
pub use judging::Judging;
pub use replay::Replay;
pub use service::RetryService;
