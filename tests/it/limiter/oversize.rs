//! Requests above a share or a reduced limit, but within the provider's own limit.

use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{Code, Limiter, ManualClock, RateLimited, Reduction, TokioClock};
use paceline::quota::{Algorithm, Quota, Share};

use super::{S, builder, manual, tokens};

fn half() -> Share {
    Share::percent(50).unwrap()
}

/// Returns limiters with half of 1,000 tokens per minute, by the limiter's share and by the
/// quota's.
fn halves() -> [(Limiter, ManualClock); 2] {
    let quota = Quota::new().tpm(1_000).with_algorithm(Algorithm::TokenBucket);
    let clock = ManualClock::new();
    let shared = builder().share(half()).quota("k", quota.clone()).clock(clock.clone());
    [(shared.build().unwrap(), clock), manual(quota.with_share(half()))]
}

#[test]
fn cost_above_the_share_waits_until_the_share_is_full() {
    for (limiter, clock) in halves() {
        limiter.try_acquire("k", &tokens(100)).unwrap().settle(&tokens(100));
        let begin = limiter.now();
        let refused = limiter.try_acquire("k", &tokens(800)).unwrap_err();
        // 500 per minute: 100 take 12 s.
        assert_eq!((refused.code, refused.wait), (Code::TpmExceeded, Wait::At(begin + 12 * S)));
        clock.advance(Duration::from_secs(12));
        let permit = limiter.try_acquire("k", &tokens(800)).unwrap();
        assert_eq!(limiter.try_acquire("k", &tokens(1)).unwrap_err().wait, Wait::Unknown);
        permit.settle(&tokens(800));
        // 300 in debt, plus 25.
        let refused = limiter.try_acquire("k", &tokens(25)).unwrap_err();
        assert_eq!(refused.wait, Wait::At(limiter.now() + 39 * S));
    }
}

#[test]
fn cost_above_whole_limit_is_refused_with_amount() {
    for (limiter, _) in halves() {
        let refused = limiter.try_acquire("k", &tokens(1_001)).unwrap_err();
        assert_eq!((refused.code, refused.wait), (Code::ExceedsCapacity, Wait::Never));
        assert_eq!(refused.need.map(|need| (need.amount, need.limit)), Some((1_001, 1_000)));
        assert!(limiter.try_acquire("k", &tokens(1_000)).is_ok());
    }
}

#[test]
fn cost_above_a_share_of_a_window_waits_for_an_empty_window() {
    let clock = ManualClock::new();
    let quota = Quota::new().tpm(1_000).with_algorithm(Algorithm::SlidingWindow);
    let limiter = builder().share(half()).quota("k", quota).clock(clock.clone()).build().unwrap();
    limiter.try_acquire("k", &tokens(1)).unwrap().settle(&tokens(1));
    clock.advance(Duration::from_secs(59));
    let refused = limiter.try_acquire("k", &tokens(900)).unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    limiter.try_acquire("k", &tokens(900)).unwrap().settle(&tokens(900));
    let refused = limiter.try_acquire("k", &tokens(1)).unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(60)));
}

#[test]
fn cost_above_reduced_share_waits_until_share_is_full() {
    let clock = ManualClock::new();
    let quota = Quota::new().tpm(1_000).with_algorithm(Algorithm::TokenBucket);
    let builder = builder().reduction(Reduction::default()).share(half());
    let limiter = builder.quota("k", quota).clock(clock.clone()).build().unwrap();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(1))));
    let refused = limiter.try_acquire("k", &tokens(1_001)).unwrap_err();
    assert_eq!(
        (refused.code, refused.need.map(|need| (need.amount, need.limit))),
        (Code::ExceedsCapacity, Some((1_001, 1_000)))
    );
    let mut waits = 0;
    while let Err(refused) = limiter.try_acquire("k", &tokens(1_000)) {
        clock.advance(refused.retry_after().expect("the request fits eventually"));
        waits += 1;
        assert!(waits < 10, "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiter_above_the_share_is_admitted_in_order() {
    let quota = Quota::new().tpm(600).with_algorithm(Algorithm::TokenBucket);
    let builder = builder().share(half()).quota("k", quota).clock(TokioClock::new());
    let limiter = builder.build().unwrap();
    let begin = limiter.now();
    limiter.acquire("k", &tokens(300)).await.unwrap().settle(&tokens(300));
    let big = limiter.acquire("k", &tokens(500)).await.unwrap();
    assert_eq!(big.granted_at() - begin, 60 * S);
    big.settle(&tokens(500));
    let small = limiter.acquire("k", &tokens(50)).await.unwrap();
    assert_eq!(small.granted_at() - begin, 60 * S + 50 * S);
}
