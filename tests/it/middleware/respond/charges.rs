//! Responses passed through server mode, and the charges of their requests.

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use paceline::middleware::{ActualCost, Ask};
use paceline::quota::{Cost, Quota};
use tower::{Layer, ServiceExt};

use super::*;

#[tokio::test(start_paused = true)]
async fn status_frames_trailers_and_errors_pass_unchanged() {
    fn odd() -> Response<Frames> {
        let trailers = [("x-one".parse().unwrap(), "1".parse().unwrap())].into_iter().collect();
        let body = Frames::from("a").data("").data(&b"\xff\0"[..]).trailers(trailers).error();
        Response::builder().status(StatusCode::IM_A_TEAPOT).header("x", "y").body(body).unwrap()
    }
    let limiter = limiter(Quota::new().rpm(9));
    let response = send(&mut guarded(&limiter, odd), get(&[])).await;
    assert_eq!((response.status(), field(response.headers(), "x")), (StatusCode::IM_A_TEAPOT, "y"));
    let mut body = response.into_body();
    for data in [&b"a"[..], b"", b"\xff\0"] {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), data);
    }
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert_eq!(body.frame().await.unwrap().unwrap_err(), InnerError);
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn size_hint_and_end_equal_inner_body() {
    let known = || Frames::from("12345").with_known_end().into_response();
    let limiter = limiter(Quota::new().rpm(9));
    let mut body = send(&mut guarded(&limiter, known), get(&[])).await.into_body();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false));
    body.frame().await.unwrap().unwrap();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
}

#[tokio::test(start_paused = true)]
async fn inner_error_passes_unchanged_and_keeps_charge() {
    let limiter = limiter(Quota::new().rpm(9).concurrency(1));
    let broken = Strict::<Request<String>, Response<Frames>>::new(|_| async { Err(InnerError) });
    let error: InnerError =
        respond(&limiter).scope("k").layer(broken).oneshot(get(&[])).await.unwrap_err();
    assert_eq!(error, InnerError);
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 1], vec![0, 0]));
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_held_until_body_ends_fails_or_is_dropped() {
    let limiter = limiter(Quota::new().concurrency(9));
    let in_flight = || held(&limiter, "k")[0];
    let mut service = guarded(&limiter, || Frames::from("a").error().into_response());
    let mut read = send(&mut service, get(&[])).await.into_body();
    let dropped = send(&mut service, get(&[])).await;
    assert_eq!(in_flight(), 2);
    drop(dropped);
    assert_eq!(in_flight(), 1);
    read.frame().await.unwrap().unwrap();
    assert_eq!(in_flight(), 1);
    read.frame().await.unwrap().unwrap_err();
    assert_eq!(in_flight(), 0);
}

/// Returns the tokens left of 100 after a request of 60 that ended with this response.
async fn left(answer: fn() -> Response<Frames>) -> u64 {
    let limiter = limiter(Quota::new().tpm(100));
    let layer = respond(&limiter).scope("k").cost(|_| Cost::new().tokens(60)).charge(|parts| {
        let tokens = parts.headers.get("x-tokens")?.to_str().ok()?.parse().ok()?;
        Some(Cost::new().tokens(tokens))
    });
    let response = layer.layer(service_returning(answer)).oneshot(get(&[])).await.unwrap();
    assert_eq!(held(&limiter, "k"), [60]);
    drop(response);
    available(&limiter, "k")[0]
}

#[tokio::test(start_paused = true)]
async fn charge_stated_by_response_settles() {
    assert_eq!(left(hello).await, 40);
    let in_header = || with(hello(), |parts| drop(parts.headers.insert("x-tokens", 7.into())));
    assert_eq!(left(in_header).await, 93);
    assert_eq!(left(|| hello_with(ActualCost::of(Cost::new().tokens(30)))).await, 70);
    assert_eq!(left(|| hello_with(ActualCost::new())).await, 40);
    // Bodies are not read: their format is the service's own.
    let like_a_provider = || Frames::from(super::super::USAGE).into_response();
    assert_eq!(left(like_a_provider).await, 40);
}

fn hello_with(charge: ActualCost) -> Response<Frames> {
    with(hello(), |parts| drop(parts.extensions.insert(charge)))
}

fn with(
    response: Response<Frames>,
    change: impl FnOnce(&mut http::response::Parts),
) -> Response<Frames> {
    let (mut parts, body) = response.into_parts();
    change(&mut parts);
    Response::from_parts(parts, body)
}

#[tokio::test(start_paused = true)]
async fn charge_set_during_stream_settles_at_last_frame() {
    let limiter = limiter(Quota::new().tpm(100));
    let charge = ActualCost::new();
    let answer = charge.clone();
    let inner =
        Strict::new(move |_: Request<String>| std::future::ready(Ok(hello_with(answer.clone()))));
    let layer = respond(&limiter).scope("k").cost(|_| Cost::new().tokens(60));
    let mut body = layer.layer(inner).oneshot(get(&[])).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), Bytes::from("hello"));
    charge.set(Cost::new().tokens(12));
    assert!(body.frame().await.is_none());
    assert_eq!(available(&limiter, "k"), [88]);
}

#[tokio::test(start_paused = true)]
async fn ask_from_outer_layer_sets_key_cost_and_deadline() {
    let limiter = builder().quota("vip", Quota::new().rpm(1).tpm(100)).build().unwrap();
    limiter.quotas().set("k", &Quota::new().rpm(0)).unwrap();
    let mut service = guarded(&limiter, hello);
    let mut request = get(&[]);
    let minute = limiter.now() + 61 * S;
    let ask = Ask::new().key("vip").cost(Cost::new().tokens(30)).deadline(minute);
    request.extensions_mut().insert(ask);
    let begin = limiter.now();
    drop(send(&mut service, request.clone()).await);
    assert_eq!(available(&limiter, "vip"), [0, 70]);
    // The deadline allows a wait; without one, the request would be refused immediately.
    assert_eq!(send(&mut service, request.clone()).await.status(), 200);
    assert!(limiter.now() - begin >= 60 * S);
    assert_eq!(send(&mut service, request).await.status(), 429);
}
