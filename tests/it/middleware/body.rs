//! Response bodies passed through the layer.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use paceline::limiter::Limiter;
use paceline::middleware::{RateLimitLayer, ResponseBody};
use paceline::quota::Quota;

use super::inner::{Frames, InnerError};
use super::{builder, chat, client_returning, held, send};

/// Returns a limiter whose held concurrency counts the requests in flight.
fn concurrency_of_five() -> Limiter {
    builder().quota("gpt-4o", Quota::new().concurrency(5)).build().unwrap()
}

async fn response_body(
    limiter: &Limiter,
    answer: fn() -> Response<Frames>,
) -> ResponseBody<Frames> {
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), answer);
    send(&mut client, chat("gpt-4o")).await.into_body()
}

fn next(body: &mut ResponseBody<Frames>) -> Option<Result<Frame<Bytes>, InnerError>> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Ready(frame) => frame,
        Poll::Pending => panic!("all frames are ready"),
    }
}

fn in_flight(limiter: &Limiter) -> u64 {
    held(limiter, "gpt-4o")[0]
}

#[tokio::test(start_paused = true)]
async fn frames_and_trailers_pass_unchanged() {
    fn trailers() -> HeaderMap {
        let values = [("x-one", "1"), ("x-two", "2")];
        values.into_iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect()
    }
    fn data_frames() -> Vec<Bytes> {
        let odd: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let sse = "\u{feff}data: {\"usage\": {\"prompt_tokens\": 1}}\r\n\r\n";
        [&odd, &b""[..], b"\0", sse.as_bytes(), b"data: [DONE]"].map(Bytes::copy_from_slice).into()
    }
    let answer = || {
        let body = data_frames().into_iter().fold(Frames::default(), Frames::data);
        Response::new(body.trailers(trailers()))
    };
    let mut body = response_body(&concurrency_of_five(), answer).await;
    for data in data_frames() {
        assert_eq!(next(&mut body).unwrap().unwrap().into_data().unwrap(), data);
    }
    assert_eq!(next(&mut body).unwrap().unwrap().into_trailers().unwrap(), trailers());
    assert!(next(&mut body).is_none());
}

#[tokio::test(start_paused = true)]
async fn size_hint_and_end_equal_inner_body() {
    let known = || Frames::from("12345").data("67").with_known_end().into_response();
    let mut body = response_body(&concurrency_of_five(), known).await;
    for left in [7, 2] {
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left), false));
        next(&mut body).unwrap().unwrap();
    }
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
    let body =
        response_body(&concurrency_of_five(), || Frames::from("12345").into_response()).await;
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (None, false));
}

#[tokio::test(start_paused = true)]
async fn reservation_ends_with_body() {
    let limiter = concurrency_of_five();
    let mut body = response_body(&limiter, || Frames::from("{}").into_response()).await;
    assert_eq!(in_flight(&limiter), 1);
    next(&mut body).unwrap().unwrap();
    assert_eq!(in_flight(&limiter), 1);
    assert!(next(&mut body).is_none());
    assert_eq!(in_flight(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn reservation_ends_with_body_error() {
    let limiter = concurrency_of_five();
    let mut body = response_body(&limiter, || Frames::from("{").error().into_response()).await;
    next(&mut body).unwrap().unwrap();
    assert_eq!(in_flight(&limiter), 1);
    assert_eq!(next(&mut body).unwrap().unwrap_err(), InnerError);
    assert_eq!(in_flight(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn reservation_ends_when_body_is_dropped() {
    let limiter = concurrency_of_five();
    let mut body = response_body(&limiter, || Frames::from("{").data("}").into_response()).await;
    next(&mut body).unwrap().unwrap();
    assert_eq!(in_flight(&limiter), 1);
    drop(body);
    assert_eq!(in_flight(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn reservation_ends_with_last_frame_if_body_knows_end() {
    let limiter = concurrency_of_five();
    let known = || Frames::from("{").data("}").with_known_end().into_response();
    let mut body = response_body(&limiter, known).await;
    next(&mut body).unwrap().unwrap();
    assert_eq!(in_flight(&limiter), 1);
    next(&mut body).unwrap().unwrap();
    assert_eq!(in_flight(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn reservation_of_empty_body_ends_immediately() {
    let no_content = || {
        let mut response = Frames::default().with_known_end().into_response();
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    };
    let head_only = || {
        let mut response = Frames::default().with_known_end().into_response();
        response.headers_mut().insert("content-length", 500.into());
        response
    };
    for answer in [no_content, head_only] {
        let limiter = concurrency_of_five();
        let body = response_body(&limiter, answer).await;
        assert_eq!(in_flight(&limiter), 0);
        drop(body);
        assert_eq!(in_flight(&limiter), 0);
    }
}
