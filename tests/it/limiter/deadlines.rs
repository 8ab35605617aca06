//! Deadlines of requests that fit once others in flight end: refused early only if no end of others helps.

use std::time::Duration;

use paceline::limiter::{Acquire, AcquireError, Code, Permit};
use paceline::quota::{Algorithm, Dimension, Limit, Window};
use paceline::{Cost, Quota};
use proptest::prelude::*;

use super::{paused, settle_down};
use crate::block_on_paused;
use paceline_testing::full::full_or;

const S: Duration = Duration::from_secs(1);

fn outputs(tokens: u64) -> Cost {
    Cost::new().output_tokens(tokens)
}

fn quotas() -> [Quota; 3] {
    let limit = |window| Limit::new(Dimension::OutputTokens, 1_000, window).unwrap();
    [
        Quota::new().otpm(1_000).with_algorithm(Algorithm::TokenBucket),
        Quota::new().limit(limit(Window::MINUTE).with_algorithm(Algorithm::SlidingWindow)),
        Quota::new().limit(
            limit(Window::new(365 * Window::DAY.as_duration()).unwrap())
                .with_algorithm(Algorithm::ClockWindow),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn request_is_granted_when_one_in_flight_uses_less() {
    for quota in quotas() {
        let limiter = paused(quota);
        limiter.acquire("k", &outputs(300)).await.unwrap().settle(&outputs(300));
        let in_flight = limiter.acquire("k", &outputs(400)).await.unwrap();
        let begin = limiter.now();
        let waiting = tokio::spawn(limiter.acquire("k", &outputs(400)).max_wait(5 * S));
        let capacity = limiter.wait_for_capacity("k", &outputs(400)).max_wait(5 * S);
        let capacity = tokio::spawn(capacity);
        settle_down().await;
        assert!(!waiting.is_finished() && !capacity.is_finished());
        tokio::time::sleep(2 * S).await;
        in_flight.settle(&outputs(10));
        waiting.await.unwrap().unwrap().settle(&outputs(10));
        capacity.await.unwrap().unwrap();
        assert_eq!(limiter.now() - begin, 2 * S);
    }
}

#[tokio::test(start_paused = true)]
async fn request_fails_at_its_deadline_if_no_other_ends() {
    for quota in quotas() {
        let limiter = paused(quota);
        let in_flight = limiter.acquire("k", &outputs(700)).await.unwrap();
        let begin = limiter.now();
        let waiting = limiter.acquire("k", &outputs(400)).max_wait(5 * S).await;
        assert!(matches!(waiting, Err(AcquireError::DeadlineExceeded { .. })));
        assert_eq!(limiter.now() - begin, 5 * S);
        drop(in_flight);
    }
}

#[tokio::test(start_paused = true)]
async fn request_is_refused_early_if_what_is_used_is_too_much() {
    for quota in quotas() {
        let limiter = paused(quota);
        limiter.acquire("k", &outputs(900)).await.unwrap().settle(&outputs(900));
        let in_flight = limiter.acquire("k", &outputs(50)).await.unwrap();
        let begin = limiter.now();
        let error = limiter.acquire("k", &outputs(500)).max_wait(5 * S).await.unwrap_err();
        let AcquireError::DeadlineExceeded { refused, .. } = error else { panic!("{error}") };
        assert!(
            matches!(refused.code, Code::OtpmExceeded | Code::LimitExceeded),
            "{:?}",
            refused.code
        );
        assert_eq!(limiter.now(), begin);
        drop(in_flight);
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_in_front_refuses_no_deadline() {
    let limiter = paused(Quota::new().rpm(60).with_algorithm(Algorithm::TokenBucket));
    limiter
        .acquire("k", &Cost::new().requests(60))
        .await
        .unwrap()
        .settle(&Cost::new().requests(60));
    let mut forgotten = Box::pin(limiter.acquire("k", &Cost::new().requests(30)));
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    tokio::time::sleep(2 * S).await;
    let begin = limiter.now();
    let passes = limiter.acquire("k", &Cost::new()).max_wait(5 * S);
    passes.await.unwrap().settle(&Cost::new());
    assert!(limiter.now() - begin < 2 * S, "{:?}", limiter.now() - begin);
}

/// The requests of a key before another arrives.
#[derive(Debug, Clone)]
struct Before {
    quota: usize,
    /// The amount of each request, the time before it, and what it used if it has ended.
    requests: Vec<(u64, u64, Option<u64>)>,
}

fn before() -> impl Strategy<Value = Before> {
    let request = (1..600_u64, 0..20_000_u64, proptest::option::of(0..600_u64));
    (0..3_usize, proptest::collection::vec(request, 1..12))
        .prop_map(|(quota, requests)| Before { quota, requests })
}

/// Returns the request after that with this wait, and the permits in flight.
async fn arriving(before: &Before, amount: u64, wait: Duration) -> (Acquire, Vec<Permit>) {
    let limiter = paused(quotas()[before.quota].clone());
    let mut in_flight = Vec::new();
    for &(amount, millis, used) in &before.requests {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let Ok(permit) = limiter.try_acquire("k", &outputs(amount)) else { continue };
        match used {
            Some(used) => permit.settle(&outputs(used.min(amount))),
            None => in_flight.push(permit),
        }
    }
    (limiter.acquire("k", &outputs(amount)).max_wait(wait), in_flight)
}

/// A request that could be granted in time, if all that is held came back now, isn't refused when it arrives.
#[test]
fn request_is_refused_early_only_if_it_could_not_be_granted() {
    let config = ProptestConfig { cases: full_or(50_000, 2_000), ..ProptestConfig::default() };
    let refused = std::cell::Cell::new(0);
    proptest!(config, |(before in before(), amount in 1..1_001_u64, wait in 0..90_000_u64)| {
        let wait = Duration::from_millis(wait);
        let is_refused = block_on_paused(async {
            let (mut arrives, _in_flight) = arriving(&before, amount, wait).await;
            matches!(arrives.arrive(), Some(Err(_)))
        });
        let could_be_granted = block_on_paused(async {
            let (arrives, in_flight) = arriving(&before, amount, wait).await;
            in_flight.into_iter().for_each(|permit| permit.settle(&outputs(0)));
            arrives.await.is_ok()
        });
        prop_assert!(!(is_refused && could_be_granted));
        refused.set(refused.get() + u32::from(is_refused));
    });
    assert!(refused.get() > 0, "no request was refused early");
}
