//! The actual usage is read from the response.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use paceline::RateLimitLayer;
use paceline::limiter::{Limiter, TokioClock};
use paceline::provider::{COMPATIBLE_USAGE, OPENAI, Profile};
use paceline::quota::Quota;
use tower::{Layer, ServiceExt, service_fn};

use super::rig::{builder, held, used};

const CHAT: &str = r#"{"model": "m", "max_tokens": 500,
    "messages": [{"role": "user", "content": "Say this is a test"}]}"#;

/// 12 input and 9 output tokens.
const USAGE: &str = r#"{"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 21}"#;

/// A body of given frames.
struct Frames(VecDeque<Bytes>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
    }
}

fn limiter(profile: Profile) -> Limiter {
    let quota = Quota::new().rpm(100).tpm(5_000).itpm(5_000).otpm(5_000);
    let limiter = builder().provider(profile).quota("m", quota).clock(TokioClock::new());
    limiter.build().unwrap()
}

/// Sends a request that is answered by `body` in chunks of this size; returns the body received.
async fn send(limiter: &Limiter, kind: &'static str, body: &str, piece: usize) -> Bytes {
    let frames: VecDeque<_> = body.as_bytes().chunks(piece).map(Bytes::copy_from_slice).collect();
    let inner = service_fn(move |_: Request<String>| {
        let response = Response::builder().header("content-type", kind);
        let response = response.body(Frames(frames.clone())).unwrap();
        async { Ok::<_, Infallible>(response) }
    });
    let request = Request::post("/v1/chat/completions").body(CHAT.to_owned()).unwrap();
    let client = RateLimitLayer::new(limiter.clone()).layer(inner);
    let response = client.oneshot(request).await.unwrap();
    assert!(held(limiter, "m")[1] >= 500, "held until the usage is known");
    response.collect().await.unwrap().to_bytes()
}

#[tokio::test(start_paused = true)]
async fn d04_usage_in_json_body_replaces_estimate() {
    let body = format!(r#"{{"id": "1", "choices": [{{"text": "Hi"}}], "usage": {USAGE}}}"#);
    for piece in [1, 2, 7, 64, 4_096] {
        let limiter = limiter(COMPATIBLE_USAGE);
        assert_eq!(send(&limiter, "application/json", &body, piece).await, body);
        assert_eq!(used(&limiter, "m"), [1, 21, 12, 9], "pieces of {piece}");
        assert_eq!(held(&limiter, "m"), [0; 4], "pieces of {piece}");
    }
}

#[tokio::test(start_paused = true)]
async fn d04_usage_in_event_stream_replaces_estimate() {
    let events = format!(
        "data: {{\"choices\": [{{\"delta\": {{\"content\": \"Hi\"}}}}], \"usage\": null}}\n\n\
         data: {{\"choices\": [], \"usage\": {USAGE}}}\n\ndata: [DONE]\n\n"
    );
    for piece in [1, 3, 50, 4_096] {
        let limiter = limiter(COMPATIBLE_USAGE);
        assert_eq!(send(&limiter, "text/event-stream", &events, piece).await, events);
        assert_eq!(used(&limiter, "m"), [1, 21, 12, 9], "pieces of {piece}");
        assert_eq!(held(&limiter, "m"), [0; 4], "pieces of {piece}");
    }
}

#[tokio::test(start_paused = true)]
async fn d04_response_without_usage_keeps_estimate() {
    let limiter = limiter(COMPATIBLE_USAGE);
    send(&limiter, "application/json", r#"{"choices": []}"#, 64).await;
    let used = used(&limiter, "m");
    assert_eq!((used[0], used[3]), (1, 500));
    assert!(used[1] >= 500, "{used:?}");
    assert_eq!(held(&limiter, "m"), [0; 4]);
}

#[tokio::test(start_paused = true)]
async fn d04_headers_report_limits_and_usage() {
    let limiter = builder().provider(OPENAI).clock(TokioClock::new()).build().unwrap();
    let inner = service_fn(|_: Request<String>| {
        let response = Response::builder()
            .header("x-ratelimit-limit-requests", "500")
            .header("x-ratelimit-remaining-requests", "480")
            .header("x-ratelimit-limit-tokens", "30000")
            .header("x-ratelimit-remaining-tokens", "28000");
        let response = response.body(Frames(VecDeque::new())).unwrap();
        async { Ok::<_, Infallible>(response) }
    });
    let client = RateLimitLayer::new(limiter.clone()).layer(inner);
    let request = Request::post("/v1/chat/completions").body(CHAT.to_owned()).unwrap();
    client.oneshot(request).await.unwrap().collect().await.unwrap();
    assert_eq!(used(&limiter, "m"), [20, 2_000]);
    let amounts: Vec<_> = limiter.stats("m").limits.iter().map(|limit| limit.limit).collect();
    assert_eq!(amounts, [500, 30_000]);
}
