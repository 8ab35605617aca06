//! Retries of requests that a provider refuses.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use paceline::limiter::{Clock, Limiter, Reduction, TokioClock};
use paceline::provider::OPENAI;
use paceline::{Quota, RateLimitLayer};
use parking_lot::Mutex;
use tower::{Layer, ServiceExt, service_fn};

use super::{chat, started};

/// Sends a request that is refused or accepted as listed: status codes with their `Retry-After`. Returns the
/// last status, and the seconds until each attempt.
async fn send(
    reduction: Reduction,
    answers: impl IntoIterator<Item = (u16, &'static str)>,
) -> (StatusCode, Vec<u64>) {
    let answers: Vec<_> = answers.into_iter().collect();
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let (record, (clock, begin)) = (Arc::clone(&attempts), started());
    let provider = service_fn(move |_| {
        let mut attempts = record.lock();
        let (status, retry_after) = answers[attempts.len()];
        attempts.push((clock.now() - begin).as_secs());
        let response = Response::builder().status(status).header("retry-after", retry_after);
        let body = Full::new(Bytes::from_static(b"{}"));
        async move { Ok::<_, Infallible>(response.body(body).unwrap()) }
    });
    let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    let builder = builder.quota("m", Quota::new().rpm(60)).reduction(reduction);
    let service = RateLimitLayer::new(builder.build().unwrap()).retry(30).layer(provider);
    let status = service.oneshot(chat("m")).await.unwrap().status();
    let attempts = attempts.lock().clone();
    (status, attempts)
}

#[tokio::test(start_paused = true)]
async fn refusals_of_any_kind_use_up_the_attempts() {
    let answers = [(503, "5"); 15].into_iter().chain([(429, "1"); 20]);
    let (status, attempts) = send(Reduction::ADAPTIVE, answers).await;
    assert_eq!((status, attempts.len()), (StatusCode::TOO_MANY_REQUESTS, 31), "{attempts:?}");
}

/// Checks that a request that is refused with a minute's delay and then with `second` is sent three times: at
/// once, after two seconds, and at `third` seconds or, at the pace of what was measured, just after.
async fn assert_third_attempt(second: &'static str, third: u64) {
    let answers = [(429, "60"), (429, second), (200, "0")];
    let (status, attempts) = send(Reduction::ADAPTIVE, answers).await;
    assert_eq!((status, &attempts[..2], attempts.len()), (StatusCode::OK, &[0, 2][..], 3));
    assert!((third..third + 2).contains(&attempts[2]), "{second}: {attempts:?}");
}

#[tokio::test(start_paused = true)]
async fn long_retry_after_is_probed_once_after_two_seconds() {
    assert_third_attempt("58", 60).await;
}

#[tokio::test(start_paused = true)]
async fn refused_probe_with_other_retry_after_obeys_that() {
    for (second, third) in [("300", 302), ("60", 60), ("30", 32), ("3", 5)] {
        assert_third_attempt(second, third).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refused_probe_without_retry_after_obeys_the_first() {
    assert_third_attempt("", 60).await;
}

#[tokio::test(start_paused = true)]
async fn long_retry_after_is_obeyed_without_probe() {
    let obeying = Reduction::ADAPTIVE.probe_retry_after(false);
    let (status, attempts) = send(obeying, [(429, "60"), (503, "40"), (200, "0")]).await;
    assert_eq!((status, &attempts[..]), (StatusCode::OK, &[0, 60, 100][..]));
}
