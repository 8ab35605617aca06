//! Errors of the layer, and the data that they must not contain.

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Request, Response};
use paceline::ErrorChain;
use paceline::limiter::{AcquireError, Code, UnknownKey};
use paceline::middleware::{Classified, Http, Journey, RateLimitError, RateLimitLayer};
use paceline::provider::COMPATIBLE_USAGE;
use paceline::quota::{Cost, Dimension, Quota};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use super::inner::{Frames, InnerError, Strict};
use super::{S, builder, echo, is_ready, limiter, read, tokens};

#[tokio::test(start_paused = true)]
async fn reject_is_always_ready_and_names_missing_capacity() {
    let limiter = limiter(Quota::new().rpm(600).tpm(60));
    let layer = tokens(&limiter).key("k").reject();
    layer.layer(echo()).oneshot(50).await.unwrap();
    let begin = limiter.now();
    let mut service = layer.layer(echo());
    assert!(is_ready(&mut service).await);
    let error = service.call(30).await.unwrap_err();
    assert_eq!((error.code(), error.key()), (Some(Code::TpmExceeded), Some("k")));
    assert_eq!(error.dimension(), Some(&Dimension::Tokens));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(20)));
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn reject_does_not_wait_for_permits_or_waiters() {
    let limiter = limiter(Quota::new().concurrency(1));
    let layer = tokens(&limiter).key("k");
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    // It waits neither for the request in flight nor for the waiter behind it.
    let mut waiting = limiter.acquire("k", &Cost::new());
    for _ in 0..2 {
        let mut service = layer.clone().reject().layer(echo());
        assert!(is_ready(&mut service).await);
        let error = service.call(1).await.unwrap_err();
        assert_eq!((error.code(), error.retry_after()), (Some(Code::ConcurrencyExceeded), None));
        waiting.arrive();
    }
    assert_eq!(limiter.stats("k").waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn max_wait_below_expected_wait_opens_gate_and_fails_call() {
    let limiter = limiter(Quota::new().rpm(1));
    let layer = tokens(&limiter).key("k").max_wait(Duration::from_secs(59));
    let mut service = layer.layer(echo());
    service.ready().await.unwrap().call(1).await.unwrap();
    let begin = limiter.now();
    assert!(is_ready(&mut service).await);
    let error = service.call(1).await.unwrap_err();
    assert_eq!((error.code(), limiter.now()), (Some(Code::RpmExceeded), begin));
    tokio::time::sleep(Duration::from_secs(1)).await;
    service.ready().await.unwrap().call(1).await.unwrap();
    assert_eq!(limiter.now() - begin, 60 * S);
}

#[tokio::test(start_paused = true)]
async fn error_of_each_refusal_names_key() {
    let classify = |tokens: &u64| Classified::new("k", Cost::new().tokens(*tokens));
    let quota = Quota::new().tpm(60).concurrency(1);
    let limiter = builder().quota("k", quota).max_waiting(0).build().unwrap();
    let layer = RateLimitLayer::new(limiter.clone()).classify(classify).observe(|_: &u64| None);
    let too_big = layer.layer(echo()).oneshot(61).await.unwrap_err();
    assert_eq!((too_big.code(), too_big.key()), (Some(Code::ExceedsCapacity), Some("k")));
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let queue_full = layer.layer(echo()).oneshot(1).await.unwrap_err();
    assert_eq!((queue_full.code(), queue_full.key()), (None, Some("k")));
    limiter.close().await;
    let closed = layer.layer(echo()).oneshot(1).await.unwrap_err();
    assert!(matches!(closed, RateLimitError::Limited(AcquireError::Closed)));
    assert_eq!(closed.key(), None);

    let limiter = builder().unknown_key(UnknownKey::Refuse).build().unwrap();
    let layer = RateLimitLayer::new(limiter).classify(classify).observe(|_: &u64| None);
    for layer in [layer.clone(), layer.key("k")] {
        let unknown = layer.layer(echo()).oneshot(1).await.unwrap_err();
        assert_eq!((unknown.code(), unknown.key()), (Some(Code::UnknownModel), Some("k")));
    }
}

#[tokio::test(start_paused = true)]
async fn error_chain_reports_each_fact_once() {
    let limiter = limiter(Quota::new().tpm(60));
    let layer = tokens(&limiter);
    let error = layer.layer(echo()).oneshot(61).await.unwrap_err();
    let needs = "rate limited: k: the request needs 61 tokens, the limit allows at most 60; \
                 make the request smaller or raise the limit";
    assert_eq!(
        (error.to_string().as_str(), ErrorChain(&error).to_string().as_str()),
        (needs, needs)
    );
    layer.layer(echo()).oneshot(60).await.unwrap();
    let error = layer.reject().layer(echo()).oneshot(15).await.unwrap_err();
    let late = "rate limited: the request cannot be granted by its deadline: \
                k: tokens per minute exceeded (needs 15, limit 60); retry in 15.000 s";
    assert_eq!(ErrorChain(&error).to_string(), late);
    assert_eq!(ErrorChain(&RateLimitError::Inner(InnerError.into())).to_string(), "oops");
}

#[tokio::test(start_paused = true)]
async fn layers_with_boxed_errors_nest_inside_and_outside() {
    let limiter = limiter(Quota::new().rpm(1));
    let broken = Strict::<u64, u64>::new(|_| async { Err(InnerError) });
    let stack = ServiceBuilder::new()
        .buffer(4)
        .timeout(Duration::from_secs(9))
        .layer(tokens(&limiter).reject())
        .buffer(4)
        .timeout(Duration::from_secs(9))
        .service(broken);
    let error: BoxError = stack.clone().oneshot(1).await.unwrap_err();
    assert_eq!(ErrorChain(&*error).to_string(), "oops");
    let error = error.downcast::<RateLimitError>().unwrap();
    // The inner error is the one that the inner layers produced.
    let RateLimitError::Inner(inner) = *error else { panic!("{error:?}") };
    assert!(inner.is::<InnerError>());
    let error = stack.oneshot(1).await.unwrap_err().downcast::<RateLimitError>().unwrap();
    assert_eq!(error.code(), Some(Code::RpmExceeded));
    // The error converts into `Box<dyn Error>`.
    fn fails(error: RateLimitError) -> Result<(), Box<dyn std::error::Error>> {
        Err(error)?
    }
    assert!(fails(*error).is_err());
}

#[tokio::test(start_paused = true)]
async fn inner_error_downcasts_only_to_original_type() {
    let error = || RateLimitError::Inner(InnerError.into());
    assert_eq!(error().into_inner::<InnerError>().unwrap(), InnerError);
    let other = error().into_inner::<std::io::Error>().unwrap_err();
    assert_eq!(other.into_inner::<InnerError>().unwrap(), InnerError);
    let limited = RateLimitError::Limited(AcquireError::Closed);
    assert!(matches!(limited.into_inner::<InnerError>(), Err(RateLimitError::Limited(_))));
}

#[tokio::test(start_paused = true)]
async fn debug_output_shows_neither_bodies_nor_secrets() {
    const SECRET: &str = "s3cr3t";
    let limiter = builder().quota("m", Quota::new().rpm(1)).build().unwrap();
    let journey = Journey::new();
    let request = || {
        Request::post("/v1/completions")
            .header(AUTHORIZATION, format!("Bearer {SECRET}"))
            .extension(journey.clone())
            .body(format!(r#"{{"model": "m", "prompt": "{SECRET}"}}"#))
            .unwrap()
    };
    let layer = RateLimitLayer::new(limiter);
    let inner = Strict::new(|_: Request<String>| async {
        let body = format!(r#"{{"choices": [{{"text": "{SECRET}"}}]}}"#);
        Ok(Response::new(Frames::default().data(body.clone()).data(body)))
    });
    let mut service = layer.layer(inner);
    let assert_hidden = |thing: &dyn std::fmt::Debug| {
        let text = format!("{thing:?} {thing:#?}");
        assert!(!text.contains(SECRET), "{text}");
    };
    assert_hidden(&layer);
    assert_hidden(&service);
    assert_hidden(&Http::new(COMPATIBLE_USAGE));
    let sent = service.ready().await.unwrap().call(request());
    let waiting = service.ready().await.unwrap().call(request());
    assert_hidden(&sent);
    assert_hidden(&waiting);
    let response = sent.await.unwrap();
    assert_hidden(response.body());
    assert!(read(response).await.unwrap().len() > 2 * SECRET.len());
    assert_hidden(&journey);
    drop(waiting);
    assert_hidden(&layer.reject().layer(echo_http()).oneshot(request()).await.unwrap_err());
}

fn echo_http() -> Strict<Request<String>, Response<Frames>> {
    Strict::new(|_| async { Ok(Response::new(Frames::default())) })
}
