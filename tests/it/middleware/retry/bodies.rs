//! Requests and responses that are kept for retries are unchanged, byte for byte.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use paceline::middleware::{BufferBodyLayer, PeekBody, RateLimitLayer, Replay};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::super::inner::{Frames, InnerError, Strict};
use super::super::{S, chat};
use super::{Script, answer, limiter_with_quota, ok, refused};

/// Returns the frames, trailers and error of a failure that is not retried.
async fn frames_of(body: Frames) -> (Vec<Bytes>, Option<HeaderMap>, Option<InnerError>) {
    let limiter = limiter_with_quota();
    let script = Script::new(&limiter, [answer(400, &[], body)]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(1));
    let mut body = client.oneshot(chat("gpt-4o")).await.unwrap().into_body();
    let (mut data, mut trailers, mut error) = (Vec::new(), None, None);
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(bytes)) => data.push(bytes),
            Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
            Err(oops) => error = Some(oops),
        }
    }
    assert!(body.frame().await.is_none());
    (data, trailers, error)
}

#[tokio::test(start_paused = true)]
async fn failed_response_passes_unchanged() {
    let long: Bytes = (0..100_000_u32).map(|n| n as u8).collect();
    for cuts in [vec![0], vec![1, 16_383], vec![65_536], vec![9_000, 70_000, 99_999]] {
        let mut cuts = cuts;
        cuts.push(long.len());
        let mut frames = vec![long.slice(..cuts[0])];
        frames.extend(cuts.windows(2).map(|cut| long.slice(cut[0]..cut[1])));
        let body = frames.iter().fold(Frames::default(), |body, data| body.data(data.clone()));
        let trailers: HeaderMap =
            [("x-end".parse().unwrap(), "1".parse().unwrap())].into_iter().collect();
        let (data, end, error) = frames_of(body.trailers(trailers.clone())).await;
        assert_eq!((data, end, error), (frames, Some(trailers), None));
    }
    let (data, _, error) = frames_of(Frames::from("half").error()).await;
    assert_eq!((data, error), (vec![Bytes::from("half")], Some(InnerError)));
}

#[tokio::test(start_paused = true)]
async fn size_hint_of_failed_response_is_exact() {
    let limiter = limiter_with_quota();
    let body = Frames::default().data("x".repeat(17_000)).data("yz").with_known_end();
    let script = Script::new(&limiter, [answer(400, &[], body)]);
    let client = script.client(&RateLimitLayer::new(limiter).retry(1));
    let mut body = client.oneshot(chat("gpt-4o")).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(17_002));
    body.frame().await.unwrap().unwrap();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(2), false));
    body.frame().await.unwrap().unwrap();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
}

/// A body that can be peeked but not cloned.
struct Single(&'static str);

impl PeekBody for Single {
    fn peek<T>(&self, read: impl FnOnce(Option<&[u8]>) -> T) -> T {
        read(Some(self.0.as_bytes()))
    }
}

#[tokio::test(start_paused = true)]
async fn body_without_replay_is_sent_once() {
    let limiter = limiter_with_quota();
    let inner = Strict::new(|_: Request<Single>| std::future::ready(Ok(refused("1"))));
    let calls = std::sync::Arc::clone(&inner.calls);
    let client = RateLimitLayer::new(limiter).retry(3).layer(inner);
    let request = Request::post("/v1/chat/completions").body(Single(r#"{"model": "gpt-4o"}"#));
    assert_eq!(client.oneshot(request.unwrap()).await.unwrap().status(), 429);
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// A body stream of one frame.
struct Stream(Option<&'static str>);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text.into()))))
    }
}

#[tokio::test(start_paused = true)]
async fn stream_buffered_whole_is_retried_and_longer_one_is_not() {
    for (bound, tries) in [(1_000, 2), (10, 1)] {
        let limiter = limiter_with_quota();
        let script = Script::new(&limiter, [refused("1"), ok()]);
        let provider = script.service();
        let client = ServiceBuilder::new()
            .layer(BufferBodyLayer::new().with_bound(bound))
            .layer(RateLimitLayer::new(limiter).key("gpt-4o").retry(1))
            .service_fn(move |request: Request<paceline::middleware::BufferedBody<Stream>>| {
                let mut provider = provider.clone();
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let text = String::from_utf8(body.to_vec()).unwrap();
                    provider.ready().await?.call(Request::new(text)).await
                }
            });
        let request = Request::post("/v1/completions").body(Stream(Some(r#"{"model": "gpt-4o"}"#)));
        client.oneshot(request.unwrap()).await.unwrap();
        let calls = script.calls.lock().clone();
        assert_eq!(calls.len(), tries);
        assert!(calls.iter().all(|(_, body)| body == r#"{"model": "gpt-4o"}"#));
    }
}

#[test]
fn replayed_request_equals_original() {
    let request = Request::put("http://h/p?q=1")
        .version(http::Version::HTTP_2)
        .header("x-a", "1")
        .extension(S)
        .body(Full::new(Bytes::from("text")))
        .unwrap();
    let again = request.replay().unwrap();
    assert_eq!((again.method(), again.uri()), (request.method(), request.uri()));
    assert_eq!((again.version(), again.headers()), (request.version(), request.headers()));
    assert_eq!(again.extensions().get::<Duration>(), Some(&S));
    assert_eq!(again.body().peek(|body| body.map(<[u8]>::to_vec)), Some(b"text".to_vec()));
}
