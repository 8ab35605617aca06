//! Quotas and providers added while the limiter runs.

use std::time::Duration;

use paceline::limiter::{AcquireError, Limiter, TokioClock, UnknownKey};
use paceline::provider::OPENAI;
use paceline::quota::{Cost, Quota};

use super::rig::{buckets, builder, paused, seconds, settle_down, tokens, waiter};

fn amounts(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.limit).collect()
}

#[tokio::test(start_paused = true)]
async fn g11_quota_set_at_run_time_applies_to_matching_keys() {
    let limiter = paused(Quota::new().rpm(7));
    drop(limiter.acquire("new", &tokens(5)).await.unwrap());
    limiter.quotas().set("new", &Quota::new().rpm(3).tpm(90)).unwrap();
    assert_eq!((amounts(&limiter, "new"), amounts(&limiter, "k")), (vec![3, 90], vec![7]));
    limiter.quotas().set("new", &Quota::new().rpm(4)).unwrap();
    assert_eq!((amounts(&limiter, "new"), amounts(&limiter, "k")), (vec![4], vec![7]));
    limiter.quotas().set("team-*", &Quota::new().rpm(2)).unwrap();
    assert_eq!((amounts(&limiter, "team-a"), amounts(&limiter, "k")), (vec![2], vec![7]));
}

#[tokio::test(start_paused = true)]
async fn g11_provider_added_keeps_existing_quotas() {
    let own = Quota::new().rpm(9);
    let limiter = builder().quota("o1", own).quota("gemini-2.5-pro", Quota::new().rpm(150));
    let limiter = limiter.clock(TokioClock::new()).build().unwrap();
    drop(limiter.acquire("gpt-4o", &tokens(100)).await.unwrap());
    assert!(amounts(&limiter, "gpt-4o").is_empty());
    limiter.quotas().add_provider(OPENAI).unwrap();
    assert_eq!(amounts(&limiter, "gpt-4o"), [500, 30_000]);
    assert_eq!(amounts(&limiter, "gpt-4o-mini"), [500, 200_000, 10_000]);
    assert_eq!(amounts(&limiter, "gemini-2.5-pro"), [150]);
    assert_eq!(amounts(&limiter, "o1"), [9], "a quota that was set precedes a default");
    limiter.quotas().add_provider(OPENAI).unwrap();
    assert_eq!(amounts(&limiter, "gpt-4o"), [500, 30_000]);
}

#[tokio::test(start_paused = true)]
async fn g11_raised_quota_admits_waiters_immediately() {
    let limiter = paused(Quota::new().rpm(1));
    let begin = limiter.now();
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    let waiters: Vec<_> = (0..5).map(|_| waiter(&limiter, "k", &Cost::new())).collect();
    settle_down().await;
    limiter.quotas().set("k", &Quota::new().rpm(6)).unwrap();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn g11_lowered_quota_delays_waiters_or_refuses() {
    let limiter = paused(buckets(Quota::new().tpm(60)));
    let begin = limiter.now();
    limiter.acquire("k", &tokens(60)).await.unwrap().settle(&tokens(60));
    let large = waiter(&limiter, "k", &tokens(40));
    let small = waiter(&limiter, "k", &tokens(10));
    settle_down().await;
    limiter.quotas().set("k", &buckets(Quota::new().tpm(30))).unwrap();
    let error = large.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::Refused(_)), "{error}");
    assert_eq!(limiter.now(), begin);
    small.await.unwrap().unwrap();
    // 60 are used of 30 per minute, of which 15 refill in 30 s.
    assert_eq!(seconds(&limiter, begin), 80);
}

#[tokio::test(start_paused = true)]
async fn g11_provider_added_admits_waiters() {
    let few = UnknownKey::Quota(Quota::new().rpm(1));
    let limiter = builder().unknown_key(few).clock(TokioClock::new()).build().unwrap();
    let begin = limiter.now();
    drop(limiter.acquire("gpt-4o", &Cost::new()).await.unwrap());
    let waiting = waiter(&limiter, "gpt-4o", &Cost::new());
    settle_down().await;
    limiter.quotas().add_provider(OPENAI).unwrap();
    tokio::time::timeout(Duration::from_secs(1), waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(seconds(&limiter, begin), 0);
}
