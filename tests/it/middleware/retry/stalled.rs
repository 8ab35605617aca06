//! Failed responses whose bodies end late or never.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use paceline::limiter::Limiter;
use paceline::middleware::{Http, RateLimitLayer, ResponseBody, RetryService};
use paceline::provider::OPENAI;
use parking_lot::Mutex;
use tower::{Layer, ServiceExt};

use super::super::inner::{InnerError, Strict};
use super::super::{S, chat};
use super::limiter_with_quota;

/// A body of these frames, followed by `Then`.
struct Slow(VecDeque<Bytes>, Then, Arc<()>);

#[derive(Clone, Copy)]
enum Then {
    End,
    Stall,
    EmptyFrames,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = InnerError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InnerError>>> {
        match (self.0.pop_front(), self.1) {
            (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
            (None, Then::End) => Poll::Ready(None),
            (None, Then::Stall) => Poll::Pending,
            (None, Then::EmptyFrames) => Poll::Ready(Some(Ok(Frame::data(Bytes::new())))),
        }
    }
}

fn slow(status: u16, text: impl Into<Bytes>, then: Then) -> Response<Slow> {
    let body = Slow([text.into()].into(), then, Arc::default());
    Response::builder().status(status).body(body).unwrap()
}

type Client = RetryService<Strict<Request<String>, Response<Slow>>, Http, Http>;
/// The time of each request in milliseconds, with the number of earlier bodies still held then.
type Calls = Arc<Mutex<Vec<(u128, usize)>>>;

/// Returns a client whose provider returns these responses in order.
fn client(
    layer: impl FnOnce(Limiter) -> RateLimitLayer,
    read: Http,
    answers: impl IntoIterator<Item = Response<Slow>>,
) -> (Limiter, Client, Calls) {
    let (limiter, calls) = (limiter_with_quota(), Calls::default());
    let (clock, log, begin) = (limiter.clone(), Arc::clone(&calls), limiter.now());
    let answers: VecDeque<_> = answers.into_iter().collect();
    let bodies: Vec<Weak<()>> = answers.iter().map(|one| Arc::downgrade(&one.body().2)).collect();
    let answers = Mutex::new(answers);
    let inner = Strict::new(move |_: Request<String>| {
        let mut log = log.lock();
        let held = bodies[..log.len()].iter().filter(|body| body.strong_count() > 0).count();
        log.push(((clock.now() - begin).as_millis(), held));
        std::future::ready(Ok(answers.lock().pop_front().expect("a response for each request")))
    });
    (limiter.clone(), layer(limiter).observe(read).retry(3).layer(inner), calls)
}

/// Returns up to three frames that are ready without waiting.
async fn beginning(response: Response<ResponseBody<Slow>>) -> Vec<Bytes> {
    let mut body = response.into_body();
    let mut frames = Vec::new();
    while frames.len() < 3 {
        let next = tokio::time::timeout(Duration::from_millis(1), body.frame()).await;
        let Ok(Some(frame)) = next else { break };
        frames.push(frame.unwrap().into_data().unwrap());
    }
    frames
}

#[tokio::test(start_paused = true)]
async fn stalled_error_body_is_judged_after_a_few_seconds() {
    let read = Http::new(OPENAI);
    let answers = [slow(500, "half", Then::Stall), slow(200, "", Then::End)];
    let (_, client, calls) = client(RateLimitLayer::new, read, answers);
    assert_eq!(client.oneshot(chat("gpt-4o")).await.unwrap().status(), 200);
    let (at, _) = calls.lock()[1];
    assert!((5_000..6_000).contains(&at), "{at}");
}

#[tokio::test(start_paused = true)]
async fn stalled_permanent_error_is_returned_with_rest_of_body() {
    let spent = r#"{"error": {"message": "You exceeded your current quota.",
        "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
    let read = Http::new(OPENAI);
    let (limiter, client, calls) =
        client(RateLimitLayer::new, read, [slow(429, spent, Then::Stall)]);
    let begin = limiter.now();
    let response = client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!((limiter.now() - begin, calls.lock().len()), (5 * S, 1));
    assert_eq!(beginning(response).await, [spent]);
}

#[tokio::test(start_paused = true)]
async fn response_is_not_read_ahead_after_deadline() {
    for (status, read) in [(500, Http::new(OPENAI)), (200, Http::new(OPENAI).whole())] {
        let layer = |limiter| RateLimitLayer::new(limiter).max_wait(Duration::from_secs(2));
        let (limiter, client, calls) = client(layer, read, [slow(status, "half", Then::Stall)]);
        let begin = limiter.now();
        let response = client.oneshot(chat("gpt-4o")).await.unwrap();
        assert_eq!((response.status().as_u16(), limiter.now() - begin), (status, 2 * S));
        assert_eq!((beginning(response).await, calls.lock().len()), (vec!["half".into()], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn empty_frames_are_not_buffered_endlessly() {
    let read = Http::new(OPENAI);
    let (_, client, _) = client(RateLimitLayer::new, read, [slow(400, "a", Then::EmptyFrames)]);
    let response = client.oneshot(chat("gpt-4o")).await.unwrap();
    assert_eq!(beginning(response).await, ["a", "", ""]);
}

#[tokio::test(start_paused = true)]
async fn long_error_body_is_dropped_before_next_attempt() {
    let read = Http::new(OPENAI);
    let answers = [slow(500, vec![b'x'; 60_000], Then::End), slow(200, "", Then::End)];
    let (_, client, calls) = client(RateLimitLayer::new, read, answers);
    assert_eq!(client.oneshot(chat("gpt-4o")).await.unwrap().status(), 200);
    assert_eq!(calls.lock()[1].1, 0);
}
