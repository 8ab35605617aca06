//! Jobs through the whole limiter, against providers whose limits aren't what the limiter was told.

mod provider;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Request;
use provider::{Headers, RetryAfter, Settings};
use tollgate::limiter::{Limiter, TokioClock};
use tollgate::provider::OPENAI;
use tollgate::{Quota, RateLimitLayer};
use tower::{Layer, ServiceExt};

/// The result of a job.
#[derive(Debug)]
struct Outcome {
    answered: u64,
    refused: u64,
    /// The accepted part of what the provider could accept.
    used: f64,
}

/// Sends 900 requests at once to a provider, through a layer with this quota.
async fn run(settings: Settings, quota: Option<Quota>) -> Outcome {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    let builder = quota.into_iter().fold(builder, |builder, quota| builder.quota("m", quota));
    let limiter = builder.build().unwrap();
    let (provider, ledger) = provider::start(settings);
    let service = RateLimitLayer::new(limiter).retry(8).layer(provider);
    let begin = tokio::time::Instant::now();
    let request = || {
        let body =
            Bytes::from_static(br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
        service.clone().oneshot(Request::post("/v1/chat/completions").body(body).unwrap())
    };
    let mut answers: FuturesUnordered<_> = (0..900).map(|_| request()).collect();
    let mut answered = 0;
    while let Some(answer) = answers.next().await {
        answered += u64::from(answer.unwrap().status().is_success());
    }
    let seconds = begin.elapsed().as_secs_f64();
    let ledger = ledger.lock();
    let rate = settings.rate * (1.0 - settings.others);
    let most = (settings.rate * settings.burst + rate * seconds).min(900.0_f64.max(rate * seconds));
    Outcome { answered, refused: ledger.refused, used: ledger.accepted as f64 / most }
}

/// Asserts that a job answers all requests, uses the limit, and is refused seldom.
async fn assert_job(name: &str, settings: Settings, quota: Option<Quota>) {
    let outcome = run(settings, quota).await;
    let Outcome { answered, refused, used } = outcome;
    assert_eq!(answered, 900, "{name}: {outcome:?}");
    assert!(refused <= 30 && used >= 0.9, "{name}: {outcome:?}");
}

fn rpm(amount: u64) -> Option<Quota> {
    Some(Quota::new().rpm(amount))
}

#[tokio::test(start_paused = true)]
async fn limit_per_minute_that_is_enforced_per_second_is_used() {
    let plain = Settings::default();
    let silent = Settings { headers: Headers::None, ..plain };
    assert_job("with headers", plain, rpm(1_200)).await;
    assert_job("without headers", silent, rpm(1_200)).await;
    assert_job(
        "without Retry-After",
        Settings { retry_after: RetryAfter::None, ..silent },
        rpm(1_200),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn limit_of_half_the_quota_is_used() {
    let plain = Settings { burst: 10.0, ..Settings::default() };
    let silent = Settings { headers: Headers::None, ..plain };
    assert_job("with headers", plain, rpm(2_400)).await;
    let mute = Settings { retry_after: RetryAfter::None, ..silent };
    assert_job("without headers and Retry-After", mute, rpm(2_400)).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_limit_is_used() {
    let plain = Settings::default();
    assert_job("with headers", plain, None).await;
    assert_job("without headers", Settings { headers: Headers::None, ..plain }, None).await;
}

#[tokio::test(start_paused = true)]
async fn limit_beside_others_is_used() {
    let shared = Settings { others: 0.5, ..Settings::default() };
    assert_job("others use half", shared, rpm(1_200)).await;
}
