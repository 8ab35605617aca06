//! An admitted request passes through the layer without an allocation.
//!
//! These tests are a separate binary, because the counting allocator is global to a process. It counts
//! only the allocations of the test's own thread. The first request isn't counted, since it creates the
//! key.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use paceline::limiter::{Limiter, ManualClock};
use paceline::middleware::{Classified, RateLimitLayer, ResponseBody};
use paceline::provider::{COMPATIBLE, OPENAI, Profile};
use paceline::quota::{Algorithm, Cost, Quota};
use parking_lot::Mutex;
use tower::util::ServiceFn;
use tower::{Layer, Service, service_fn};

#[test]
fn closure_service_request_does_not_allocate() {
    for layer in [tokens(), tokens().key(KEY)] {
        let mut service = layer.layer(echo());
        call(&mut service, 7);
        let allocated = allocations(|| {
            for _ in 0..100 {
                call(&mut service, 7);
            }
        });
        assert_eq!(allocated, 0);
    }
}

#[test]
fn full_sliding_window_does_not_allocate() {
    let clock = ManualClock::new();
    let quota = Quota::new().rpm(1_000_000).tpm(1_000_000);
    let quota = quota.with_algorithm(Algorithm::SlidingWindow);
    let limiter = Limiter::builder().quota("*", quota).clock(clock.clone()).build().unwrap();
    let tenth = || clock.advance(Duration::from_millis(100));
    let mut service = tokens_of(limiter).layer(echo());
    for _ in 0..1_000 {
        tenth();
        call(&mut service, 7);
    }
    let allocated = allocations(|| {
        for _ in 0..1_000 {
            tenth();
            call(&mut service, 7);
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn chat_request_does_not_allocate() {
    for profile in [OPENAI, COMPATIBLE] {
        let pool = ResponsePool::new(JSON, "application/json");
        let mut client = client(profile, &pool);
        get(&mut client, chat("gpt-4o"));
        for _ in 0..10 {
            pool.fill();
            let request = chat("gpt-4o");
            assert_eq!(allocations(|| get(&mut client, request)), 0, "{profile:?}");
        }
    }
}

#[test]
fn stream_frame_does_not_allocate() {
    for event in EVENTS {
        let pool = ResponsePool::new(event, "text/event-stream");
        let mut client = client(COMPATIBLE, &pool);
        let mut body = call(&mut client, chat("gpt-4o")).into_body();
        // The buffers grow during the first few frames.
        (0..5).for_each(|_| drop(frame(&mut body)));
        assert_eq!(allocations(|| (0..1_000).for_each(|_| drop(frame(&mut body)))), 0, "{event}");
    }
}

#[test]
fn chat_stream_does_not_allocate() {
    let pool = ResponsePool::new(EVENTS[0], "text/event-stream");
    let mut client = client(COMPATIBLE, &pool);
    get(&mut client, chat("gpt-4o"));
    pool.fill();
    let request = chat("gpt-4o");
    assert_eq!(
        allocations(|| {
            let mut body = call(&mut client, request).into_body();
            (0..100).for_each(|_| drop(frame(&mut body)));
        }),
        0
    );
}

#[test]
fn key_longer_than_24_bytes_allocates_once() {
    let pool = ResponsePool::new(JSON, "application/json");
    // Without a slow start, during which the key is copied once more.
    let mut client = client_of(&RateLimitLayer::new(limiter()).provider(OPENAI).reject(), &pool);
    let model = "ft:gpt-4o-2024-08-06:my-team";
    get(&mut client, chat(model));
    pool.fill();
    let request = chat(model);
    assert_eq!(allocations(|| get(&mut client, request)), 1);
}

/// Returns the number of allocations that this thread makes during `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

/// Returns a limiter whose quota exceeds the cost of any test, in every dimension.
fn limiter() -> Limiter {
    let quota = Quota::new().rpm(60_000_000).tpm(600_000_000).rpd(86_400_000_000);
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    Limiter::builder().quota("*", quota).build().unwrap()
}

type Tokens = RateLimitLayer<fn(&u64) -> Classified, fn(&u64) -> Option<Cost>>;

/// Returns a layer for requests that are a number of tokens, of which half are charged.
fn tokens() -> Tokens {
    tokens_of(limiter())
}

fn tokens_of(limiter: Limiter) -> Tokens {
    RateLimitLayer::new(limiter)
        .classify((|tokens: &u64| Classified::new(KEY, Cost::new().tokens(*tokens))) as _)
        .observe((|tokens: &u64| Some(Cost::new().tokens(tokens / 2))) as _)
}

type Echo = ServiceFn<fn(u64) -> Ready<Result<u64, Infallible>>>;

fn echo() -> Echo {
    service_fn(|tokens| ready(Ok(tokens)))
}

/// Makes the service ready, calls it, and returns the response, which must be ready immediately.
fn call<S, R>(service: &mut S, request: R) -> S::Response
where
    S: Service<R>,
    S::Error: std::fmt::Debug,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let Poll::Ready(response) = pin!(service.call(request)).poll(&mut cx) else {
        panic!("the response is ready immediately");
    };
    response.unwrap()
}

/// Responses that are created in advance, because their headers allocate.
#[derive(Clone)]
struct ResponsePool {
    ready: Arc<Mutex<Vec<Response<Frames>>>>,
    body: &'static str,
    kind: &'static str,
}

impl ResponsePool {
    fn new(body: &'static str, kind: &'static str) -> Self {
        let pool = Self { ready: Arc::default(), body, kind };
        pool.fill();
        pool
    }

    fn fill(&self) {
        let times = if self.kind == "text/event-stream" { 2_000 } else { 1 };
        let frames = Frames { data: Bytes::from_static(self.body.as_bytes()), times };
        let response = Response::builder().header("content-type", self.kind).body(frames);
        self.ready.lock().push(response.unwrap());
    }
}

/// A body that repeats the same frame `times` times.
struct Frames {
    data: Bytes,
    times: usize,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let left = self.times.checked_sub(1);
        self.times = left.unwrap_or(0);
        Poll::Ready(left.map(|_| Ok(Frame::data(self.data.clone()))))
    }
}

/// Returns a client of a provider that responds from `pool` and allocates nothing itself.
fn client(
    profile: Profile,
    pool: &ResponsePool,
) -> impl Service<Request<Full<Bytes>>, Response = Response<ResponseBody<Frames>>, Error: std::fmt::Debug>
{
    client_of(&RateLimitLayer::new(limiter()).provider(profile), pool)
}

fn client_of(
    layer: &RateLimitLayer,
    pool: &ResponsePool,
) -> impl Service<
    Request<Full<Bytes>>,
    Response = Response<ResponseBody<Frames>>,
    Error: std::fmt::Debug,
> + use<> {
    let ready_made = Arc::clone(&pool.ready);
    let provider = service_fn(move |_: Request<Full<Bytes>>| {
        ready(Ok::<_, Infallible>(ready_made.lock().pop().expect("the pool has a response")))
    });
    layer.layer(provider)
}

fn frame(body: &mut ResponseBody<Frames>) -> Option<Frame<Bytes>> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Ready(frame) => frame.map(|frame| frame.unwrap()),
        Poll::Pending => panic!("all frames are ready"),
    }
}

/// Performs a whole exchange, up to the end of the body.
fn get<S>(client: &mut S, request: Request<Full<Bytes>>)
where
    S: Service<Request<Full<Bytes>>, Response = Response<ResponseBody<Frames>>>,
    S::Error: std::fmt::Debug,
{
    let mut body = call(client, request).into_body();
    while frame(&mut body).is_some() {}
}

fn chat(model: &str) -> Request<Full<Bytes>> {
    let system =
        "You are a helpful assistant. Answer in one sentence, in the language of the question.";
    let messages = serde_json::json!([
        {"role": "system", "content": system},
        {"role": "user", "content": "Which is the highest mountain of the Alps, and who climbed it first?"},
    ]);
    let body = serde_json::json!({"model": model, "max_tokens": 100, "messages": messages});
    Request::post("/v1/chat/completions").body(Full::from(body.to_string())).unwrap()
}

const KEY: &str = "gpt-4o-mini-2024-07-18";

const JSON: &str = r#"{"id": "chatcmpl-1", "object": "chat.completion", "created": 1735689600,
"model": "gpt-4o-2024-08-06", "choices": [{"index": 0, "message": {"role": "assistant",
"content": "Mont Blanc; Balmat and Paccard."}, "finish_reason": "stop"}], "usage":
{"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 21}}"#;

/// One event of Chat Completions and one of Responses.
const EVENTS: [&str; 2] = [
    concat!(
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1735689600,"#,
        r#""model":"gpt-4o","choices":[{"index":0,"delta":{"content":" Blanc"}}],"usage":null}"#,
        "\n\n"
    ),
    concat!(
        "event: response.function_call_arguments.delta\n",
        r#"data: {"type":"response.function_call_arguments.delta","output_index":0,"#,
        r#""sequence_number":7,"item_id":"fc_1","delta":"{\"city\": \"Cha"}"#,
        "\n\n"
    ),
];
