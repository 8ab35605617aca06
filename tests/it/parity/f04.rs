//! Waiting: a request waits until all buckets have capacity, then reserves in all of them.

use std::sync::Arc;

use paceline::limiter::{Code, Limiter, TokioClock};
use paceline::quota::{Cost, Quota};
use parking_lot::Mutex;

use super::rig::{S, buckets, builder, seconds, tokens, used};

fn limiter() -> Limiter {
    builder().clock(TokioClock::new()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn f04_fitting_request_does_not_wait() {
    let limiter = limiter();
    let (begin, limits) = (limiter.now(), Quota::new().rpm(3).tpm(30));
    for _ in 0..3 {
        limiter.acquire("k", &tokens(10)).limits(&limits).await.unwrap();
    }
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn f04_request_waits_for_slowest_bucket_then_charges_all() {
    // After full use: 5 requests take 5 s, 12 tokens 12 s, 3 input tokens 3 s.
    let limits = buckets(Quota::new().rpm(60).tpm(60).itpm(60));
    let all = Cost::new().requests(60).tokens(60).input_tokens(60);
    let cost = Cost::new().requests(5).tokens(12).input_tokens(3);
    let limiter = limiter();
    limiter.acquire("k", &all).limits(&limits).try_now().unwrap().settle(&all);
    let begin = limiter.now();
    limiter.acquire("k", &cost).limits(&limits).await.unwrap().settle(&cost);
    assert_eq!(seconds(&limiter, begin), 12);
    assert_eq!(used(&limiter, "k"), [60 - 12 + 5, 60, 60 - 12 + 3]);
}

#[tokio::test(start_paused = true)]
async fn f04_hundred_waiters_are_admitted_at_the_rate_of_limit() {
    let limiter = limiter();
    let limits = Quota::new().rpm(10).tpm(1_000);
    let (begin, granted) = (limiter.now(), Arc::new(Mutex::new(Vec::new())));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let acquire = limiter.acquire("k", &tokens(100)).limits(&limits);
        let (limiter, granted) = (limiter.clone(), Arc::clone(&granted));
        tasks.spawn(async move {
            let permit = acquire.await.unwrap();
            granted.lock().push(limiter.now() - begin);
            permit.settle(&tokens(100));
        });
    }
    tasks.join_all().await;
    let granted = granted.lock();
    assert_eq!(granted.len(), 100);
    for pair in granted.windows(11) {
        assert!(pair[10] - pair[0] >= 60 * S, "eleven grants in a minute: {pair:?}");
    }
    // The rate isn't lower than ten per minute either. Tokio's timer has a resolution of milliseconds.
    assert_eq!(granted[99].as_secs(), 540);
}

#[tokio::test(start_paused = true)]
async fn f04_cost_above_limit_is_refused_immediately() {
    let limiter = limiter();
    let (begin, limits) = (limiter.now(), Quota::new().rpm(10).tpm(100));
    let error = limiter.acquire("k", &tokens(101)).limits(&limits).await.unwrap_err();
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::ExceedsCapacity));
    assert_eq!(limiter.now(), begin);
    assert_eq!(limiter.stats("k").waiting, 0);
    limiter.acquire("k", &tokens(100)).limits(&limits).await.unwrap();
    assert_eq!(limiter.now(), begin);
}
