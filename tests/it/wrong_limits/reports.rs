//! Events, statistics and errors of learned limits.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use paceline::cluster::{Agent, LocalBus};
use paceline::limiter::{
    Code, Event, Ignored, KeySnapshot, LearnedFrom, LearnedLimit, LearnedUpdate, Limiter,
    Reduction, TokioClock,
};
use paceline::provider::OPENAI;
use paceline::quota::Dimension;
use paceline::{Cost, Quota, RateLimitLayer, Timestamp};
use paceline_limiter::seam;
use parking_lot::Mutex;
use tower::{Layer, Service, ServiceExt, service_fn};
use tracing::Level;

use crate::telemetry::Log;

/// The number of the request that a test's provider refuses.
const REFUSED: u64 = 5;

fn limiter(rpm: u64) -> Limiter {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    builder.quota("m", Quota::new().rpm(rpm)).build().unwrap()
}

/// A refusal that names the dimension, and one that doesn't.
const NAMED: &str =
    r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
const UNNAMED: &str = "{}";

/// Returns a layered provider that refuses one request, and accepts all others after 50 ms.
fn provider(
    limiter: &Limiter,
    refusal: &'static str,
) -> impl Service<Request<Bytes>, Error: std::fmt::Debug, Future: Send> + Clone + use<> {
    let number = Arc::new(AtomicU64::new(0));
    RateLimitLayer::new(limiter.clone()).retry(8).layer(service_fn(move |_: Request<Bytes>| {
        let number = number.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let mut response = Response::new(Full::new(Bytes::from_static(b"{}")));
            if number == REFUSED {
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                *response.body_mut() = Full::new(Bytes::from_static(refusal.as_bytes()));
            }
            Ok::<_, Infallible>(response)
        }
    }))
}

fn request() -> Request<Bytes> {
    let body = Bytes::from_static(br#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
    Request::post("/v1/chat/completions").body(body).unwrap()
}

/// Collects the events of learned and reduced limits.
fn changes(limiter: &Limiter) -> Arc<Mutex<Vec<Event>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    limiter.listen(move |event| {
        if matches!(
            event,
            Event::LimitsLearned { .. }
                | Event::LearnedLimitEnded { .. }
                | Event::Reduced { .. }
                | Event::Recovered { .. }
        ) {
            record.lock().push(event.clone());
        }
    });
    seen
}

#[tokio::test(start_paused = true)]
async fn learned_limit_is_reported_until_the_end() {
    let limiter = limiter(1_200);
    let (seen, service) = (changes(&limiter), provider(&limiter, NAMED));
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let events = std::mem::take(&mut *seen.lock());
    let [Event::LimitsLearned { key, limits, capacity }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((key.as_str(), *capacity), ("m", 600));
    assert_eq!(*limits, limiter.stats("m").learned);
    assert_eq!((limits.len(), limits[0].source), (1, LearnedFrom::Answers));
    let text = limits[0].to_string();
    assert!(text.ends_with(" requests/s (told 20)"), "{text}");

    let jobs = (0..4_000).map(|_| service.clone().oneshot(request()));
    futures_util::future::join_all(jobs).await;
    let ended = Event::LearnedLimitEnded { key: "m".into(), dimension: Dimension::Requests };
    assert_eq!(*seen.lock(), [ended]);
    assert_eq!(limiter.stats("m").learned, []);
}

#[tokio::test(start_paused = true)]
async fn refusal_without_dimension_reports_configured_limits() {
    let limiter = limiter(1_200);
    let (seen, service) = (changes(&limiter), provider(&limiter, UNNAMED));
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let learned = limiter.stats("m").learned;
    assert!(learned.len() > 1, "tokens are measured too: {learned:?}");
    let seen = seen.lock();
    let [Event::LimitsLearned { limits, .. }] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(
        limits.iter().map(|limit| &limit.dimension).collect::<Vec<_>>(),
        [&Dimension::Requests]
    );
}

#[tokio::test(start_paused = true)]
async fn learned_limit_is_logged_in_words() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(1_200);
    let service = provider(&limiter, NAMED);
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let line = format!("learned {}", limiter.stats("m").learned[0]);
    let lines = log.named(&line);
    assert_eq!(lines.len(), 1, "{line}: {:?}", log.lines());
    assert_eq!(lines[0].field("key"), Some("m"));
}

#[tokio::test(start_paused = true)]
async fn programs_on_bus_are_told_half_of_capacity() {
    let (bus, limiters) = (Arc::new(LocalBus::new()), [limiter(1_200), limiter(1_200)]);
    let _agents: Vec<_> = ["a", "b"]
        .into_iter()
        .zip(&limiters)
        .map(|(id, limiter)| Agent::join(limiter, bus.clone(), id).unwrap())
        .collect();
    let service = provider(&limiters[0], NAMED);
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let amounts = limiters.each_ref().map(|limiter| limiter.stats("m").limits[0].limit);
    assert_eq!(amounts, [1_200, 600]);
}

#[tokio::test(start_paused = true)]
async fn programs_on_bus_start_with_learned_limit() {
    let (bus, limiters) = (Arc::new(LocalBus::new()), [limiter(1_200), limiter(1_200)]);
    let agents: Vec<_> = ["a", "b"]
        .into_iter()
        .zip(&limiters)
        .map(|(id, limiter)| Agent::join(limiter, bus.clone(), id).unwrap())
        .collect();
    let [first, second] = limiters.each_ref().map(|limiter| provider(limiter, NAMED));
    second.clone().oneshot(request()).await.unwrap();
    for _ in 0..REFUSED {
        first.clone().oneshot(request()).await.unwrap();
    }
    let learned = limiters.each_ref().map(|limiter| limiter.stats("m").learned);
    assert_eq!(learned.each_ref().map(Vec::len), [1, 1]);
    assert_eq!(learned[0][0].amount, learned[1][0].amount);
    assert_eq!(
        learned.each_ref().map(|limits| limits[0].source),
        [LearnedFrom::Answers, LearnedFrom::Bus]
    );

    // What its own answers have measured stays.
    for _ in 0..REFUSED {
        second.clone().oneshot(request()).await.unwrap();
    }
    let own = limiters[1].stats("m").learned;
    assert_eq!(own[0].source, LearnedFrom::Answers);
    let other = LearnedLimit::new(Dimension::Requests, 1.0, limiters[1].now(), 9);
    let update = LearnedUpdate::new("m", "c", vec![other], limiters[1].now());
    let feedback = limiters[1].feedback();
    assert_eq!(feedback.apply_learned(&update, "b"), Err(Ignored::NotNeeded));
    assert_eq!(limiters[1].stats("m").learned, own);
    assert_eq!(feedback.apply_learned(&update, "c"), Err(Ignored::Own));
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!(feedback.apply_learned(&update, "b"), Err(Ignored::Stale));
    assert_eq!(agents[1].status().malformed, 0);
}

#[tokio::test(start_paused = true)]
async fn refusal_by_learned_limit_states_dimension_and_rate() {
    let limiter = limiter(1_200);
    let service = provider(&limiter, NAMED);
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let refused = limiter.try_acquire("m", &Cost::new()).unwrap_err();
    assert_eq!(
        (refused.code, &refused.dimension),
        (Code::LearnedLimit, &Some(Dimension::Requests))
    );
    let learned = limiter.stats("m").learned.remove(0);
    assert!(refused.to_string().contains(&learned.to_string()), "{refused}");
}

/// Returns a key's state with a rate that was measured some time ago.
fn snapshot(limiter: &Limiter, age: Duration) -> KeySnapshot {
    let measured_at = limiter.now() - age;
    let mut key = KeySnapshot::new("m", Vec::new());
    key.learned = vec![LearnedLimit::new(Dimension::Requests, 5.0, measured_at, 3)];
    key
}

#[tokio::test(start_paused = true)]
async fn restored_limit_is_used_and_keeps_age() {
    let limiter = limiter(1_200);
    let before = snapshot(&limiter, Duration::from_secs(3_600));
    limiter.state().absorb(std::slice::from_ref(&before));
    let learned = limiter.stats("m").learned;
    assert_eq!((learned[0].amount, learned[0].configured), (5.0, Some(20.0)));
    assert_eq!(
        (learned[0].measured_at, learned[0].source),
        (before.learned[0].measured_at, LearnedFrom::Store)
    );
    assert_eq!(
        learned[0].provenance(limiter.now()),
        "measured 3 times, last 1h ago, by an earlier run"
    );
    let started = limiter.now();
    for _ in 0..10 {
        limiter.acquire("m", &Cost::new()).await.unwrap().settle(&Cost::new());
    }
    let elapsed = limiter.now() - started;
    assert!(elapsed >= Duration::from_millis(1_700), "{elapsed:?}");
    assert_eq!(limiter.state().snapshot()[0].learned[0].measured_at, before.learned[0].measured_at);
}

#[tokio::test(start_paused = true)]
async fn limit_older_than_a_day_is_not_restored() {
    let limiter = limiter(1_200);
    let before = snapshot(&limiter, Duration::from_secs(86_401));
    limiter.state().absorb(&[before]);
    assert_eq!(limiter.stats("m").learned, []);
}

#[tokio::test(start_paused = true)]
async fn limiter_with_fixed_reduction_restores_no_limit() {
    let builder = Limiter::builder().clock(TokioClock::new()).reduction(Reduction::new());
    let limiter = builder.quota("m", Quota::new().rpm(1_200)).build().unwrap();
    limiter.state().absorb(&[snapshot(&limiter, Duration::ZERO)]);
    assert_eq!(limiter.stats("m").learned, []);
}

#[tokio::test(start_paused = true)]
async fn learned_limits_are_changes_for_a_store() {
    let limiter = limiter(1_200);
    seam::track(&limiter);
    let service = provider(&limiter, NAMED);
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let mut changes = seam::collect_changes(&limiter);
    let learned = changes.remove(0).learned;
    assert_eq!(learned.as_ref(), Some(&limiter.stats("m").learned));
    assert_eq!(limiter.state().snapshot()[0].learned, learned.unwrap());
    let jobs = (0..4_000).map(|_| service.clone().oneshot(request()));
    futures_util::future::join_all(jobs).await;
    assert_eq!(seam::collect_changes(&limiter)[0].learned, Some(Vec::new()));
    service.clone().oneshot(request()).await.unwrap();
    assert_eq!(seam::collect_changes(&limiter)[0].learned, None);
}

#[tokio::test(start_paused = true)]
async fn growth_since_refusal_is_a_change_for_a_store() {
    let limiter = limiter(1_200);
    seam::track(&limiter);
    let service = provider(&limiter, NAMED);
    for _ in 0..REFUSED {
        service.clone().oneshot(request()).await.unwrap();
    }
    let collect = || seam::collect_changes(&limiter).remove(0).learned;
    let measured = collect().unwrap()[0].amount;
    futures_util::future::join_all((0..60).map(|_| service.clone().oneshot(request()))).await;
    let grown = collect().unwrap();
    assert_eq!(grown, limiter.stats("m").learned);
    assert!(grown[0].amount > measured, "{grown:?} {measured}");
    service.clone().oneshot(request()).await.unwrap();
    assert_eq!(collect(), None, "nearly the same");
}

#[test]
fn learned_limit_is_displayed_with_three_digits() {
    let now = Timestamp::UNIX_EPOCH + Duration::from_secs(10_000);
    let limit = |dimension, amount| LearnedLimit::new(dimension, amount, now, 1);
    let told = |mut limit: LearnedLimit, configured| {
        limit.configured = Some(configured);
        limit
    };
    let texts = [
        (told(limit(Dimension::Requests, 19.97), 40.0), "20 requests/s (told 40)"),
        (told(limit(Dimension::InputTokens, 1_234.5), 500.0), "1234 input tokens/s (told 500)"),
        (limit(Dimension::Requests, 0.0166), "0.017 requests/s (no limit was configured)"),
        (limit(Dimension::Concurrency, 7.0), "7 requests in flight"),
    ];
    for (limit, text) in texts {
        assert_eq!(limit.to_string(), text);
    }
}
