//! Request bodies that are buffered.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use paceline::limiter::Limiter;
use paceline::middleware::{BufferBodyLayer, BufferedBody, PeekBody, RateLimitLayer};
use paceline::provider::COMPATIBLE_USAGE;
use paceline::quota::Quota;
use parking_lot::Mutex;
use proptest::prelude::*;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use super::inner::{Frames, InnerError, Strict};
use super::{USAGE, available, builder, chat, held, is_ready};
use paceline_testing::full::full_or;

/// The result of one poll of a body.
#[derive(Debug, Clone)]
enum Step {
    Wait,
    Data(Vec<u8>),
    Trailers,
    Fail,
}

/// A body of these steps, with an optional known size. A clone can read the number of remaining steps.
#[derive(Debug, Clone)]
struct Steps {
    left: Arc<Mutex<VecDeque<Step>>>,
    has_size_hint: bool,
}

impl Steps {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let left = Arc::new(Mutex::new(steps.into_iter().collect()));
        Self { left, has_size_hint: false }
    }

    fn left(&self) -> usize {
        self.left.lock().len()
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = InnerError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InnerError>>> {
        let step = self.left.lock().pop_front();
        Poll::Ready(match step {
            Some(Step::Wait) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Step::Data(data)) => Some(Ok(Frame::data(data.into()))),
            Some(Step::Trailers) => Some(Ok(Frame::trailers(trailers()))),
            Some(Step::Fail) => Some(Err(InnerError)),
            None => None,
        })
    }

    fn size_hint(&self) -> SizeHint {
        if !self.has_size_hint {
            return SizeHint::default();
        }
        let left = self.left.lock();
        let sizes = left.iter().map(|step| match step {
            Step::Data(data) => data.len() as u64,
            Step::Wait | Step::Trailers | Step::Fail => 0,
        });
        SizeHint::with_exact(sizes.sum())
    }
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([("x-sum".parse().unwrap(), "17".parse().unwrap())])
}

/// Returns the bytes and trailers of a body, and whether it failed after them.
async fn read_to_end<B: Body<Data = Bytes> + Unpin>(
    mut body: B,
) -> (Vec<u8>, Option<HeaderMap>, bool) {
    let (mut bytes, mut trailers) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (bytes, trailers, true) };
        match frame.into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    (bytes, trailers, false)
}

/// Returns the request that the layer with this bound forwards.
async fn buffer(bound: usize, request: Request<Steps>) -> Request<BufferedBody<Steps>> {
    let service = service_fn(async |request| Ok::<_, InnerError>(request));
    BufferBodyLayer::new().with_bound(bound).layer(service).oneshot(request).await.unwrap()
}

fn peek_bytes(body: &impl PeekBody) -> Option<Vec<u8>> {
    body.peek(|bytes| bytes.map(<[u8]>::to_vec))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let data = prop::collection::vec(any::<u8>(), 0..12).prop_map(Step::Data);
    let body = prop::collection::vec(prop_oneof![3 => data, 1 => Just(Step::Wait)], 0..12);
    let end = prop_oneof![Just(None), Just(Some(Step::Trailers)), Just(Some(Step::Fail))];
    (body, end).prop_map(|(body, end)| body.into_iter().chain(end).collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: full_or(100_000, 10_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn buffered_body_keeps_bytes_trailers_and_error(
        steps in steps(),
        bound in 0_usize..80,
        has_size_hint: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let expected = read_to_end(Steps::new(steps.clone())).await;
            let (bytes, _, failed) = &expected;
            let mut body = Steps::new(steps);
            body.has_size_hint = has_size_hint;
            let body = buffer(bound, Request::new(body)).await.into_body();
            let whole = bytes.len() <= bound && !failed;
            assert_eq!(peek_bytes(&body), whole.then(|| bytes.clone()));
            let hint = body.size_hint();
            let size = bytes.len() as u64;
            assert!(hint.lower() <= size && hint.upper().is_none_or(|upper| size <= upper));
            assert!(!body.is_end_stream() || expected == (Vec::new(), None, false));
            assert_eq!(read_to_end(body).await, expected);
        });
    }
}

/// Returns a body of this text in frames of 10 bytes.
fn text(text: &str) -> Steps {
    Steps::new(text.as_bytes().chunks(10).map(|chunk| Step::Data(chunk.to_vec())))
}

#[tokio::test]
async fn body_known_to_exceed_bound_is_not_read() {
    let mut known = text(&"x".repeat(100));
    known.has_size_hint = true;
    let body = buffer(99, Request::new(known.clone())).await.into_body();
    assert_eq!((known.left(), body.size(), peek_bytes(&body)), (10, Some(100), None));

    let stated = text(&"x".repeat(100));
    let request = Request::post("/").header("content-length", "100").body(stated.clone()).unwrap();
    let body = buffer(99, request).await.into_body();
    assert_eq!((stated.left(), body.size(), peek_bytes(&body)), (10, Some(100), None));
}

#[tokio::test]
async fn body_found_to_exceed_bound_is_read_up_to_bound() {
    let long = text(&"x".repeat(100));
    let body = buffer(35, Request::new(long.clone())).await.into_body();
    // Three frames fit; the fourth was read as well. These are the known bytes.
    assert_eq!((long.left(), body.size(), peek_bytes(&body)), (6, Some(40), None));
    assert!(!body.is_end_stream());
    assert_eq!(read_to_end(body).await.0.len(), 100);
}

#[tokio::test]
async fn buffered_body_has_exact_size_unless_trailers_follow() {
    let body = buffer(99, Request::new(text("twelve bytes"))).await.into_body();
    assert_eq!(body.size_hint().exact(), Some(12));
    // A client that knows the exact size sends no trailers.
    let steps = [Step::Data(b"twelve bytes".to_vec()), Step::Trailers];
    let body = buffer(99, Request::new(Steps::new(steps))).await.into_body();
    assert_eq!(
        (body.size_hint().exact(), peek_bytes(&body)),
        (None, Some(b"twelve bytes".to_vec()))
    );
}

fn limiter() -> Limiter {
    let quota = Quota::new().tpm(10_000);
    builder().provider(COMPATIBLE_USAGE).quota("gpt-4o", quota).build().unwrap()
}

type Client = Strict<Request<BufferedBody<Steps>>, Response<Frames>>;

fn provider() -> Client {
    Strict::new(|request: Request<BufferedBody<Steps>>| async move {
        read_to_end(request.into_body()).await;
        Ok(Frames::from(USAGE).into_response())
    })
}

fn streamed(request: Request<String>) -> Request<Steps> {
    request.map(|body| text(&body))
}

#[tokio::test(start_paused = true)]
async fn streamed_request_is_charged_like_one_in_memory() {
    let limiter = limiter();
    let mut reserved = Vec::new();
    for bound in [10_000, 20] {
        let service = ServiceBuilder::new()
            .layer(BufferBodyLayer::new().with_bound(bound))
            .layer(RateLimitLayer::new(limiter.clone()))
            .service(provider());
        let response = service.oneshot(streamed(chat("gpt-4o"))).await.unwrap();
        reserved.push(held(&limiter, "gpt-4o"));
        drop(response);
    }
    // Beyond the bound the model can't be read, so that no amount is held.
    let in_memory = RateLimitLayer::new(limiter.clone())
        .layer(Strict::new(|_: Request<String>| async { Ok(Frames::from(USAGE).into_response()) }));
    let response = in_memory.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(reserved, [held(&limiter, "gpt-4o"), vec![0]]);
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn request_dropped_while_body_is_read_is_not_charged() {
    let limiter = limiter();
    let inner = provider();
    let calls = Arc::clone(&inner.calls);
    let mut service = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .layer(RateLimitLayer::new(limiter.clone()))
        .service(inner);
    let slow = Steps::new([Step::Data(b"{".to_vec()), Step::Wait, Step::Wait]);
    let request = Request::post("/v1/chat/completions").body(slow.clone()).unwrap();
    let mut sending = Box::pin(service.ready().await.unwrap().call(request));
    assert!((&mut sending).now_or_never().is_none());
    assert_eq!(slow.left(), 1);
    drop(sending);
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![10_000]));
}

#[tokio::test(start_paused = true)]
async fn slow_body_does_not_occupy_inner_service() {
    let mut service = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .concurrency_limit(1)
        .service(provider());
    let slow = Steps::new([Step::Wait, Step::Data(b"{}".to_vec())]);
    let mut slow = Box::pin(service.ready().await.unwrap().call(Request::new(slow)));
    assert!((&mut slow).now_or_never().is_none());
    let other = async { service.ready().await.unwrap().call(Request::new(text("{}"))).await };
    tokio::time::timeout(Duration::from_secs(1), other).await.unwrap().unwrap();
    slow.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn gate_behind_buffer_layer_delays_readiness() {
    let limiter = builder().quota("k", Quota::new().rpm(1)).build().unwrap();
    let mut service = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .layer(RateLimitLayer::new(limiter).key("k"))
        .service(provider());
    service.ready().await.unwrap().call(streamed(chat("gpt-4o"))).await.unwrap();
    assert!(!is_ready::<_, Request<Steps>>(&mut service).await);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(is_ready::<_, Request<Steps>>(&mut service).await);
}
