//! Stats of one key and of all keys, and resets.

use std::time::Duration;

use paceline::limiter::{Code, Limiter, ManualClock, RateLimited, TokioClock};
use paceline::quota::{Cost, Quota, Window};

use super::rig::{builder, held, paused, seconds, settle_down, tokens, used, waiter};

/// Returns a limiter with usage of the keys `a` and `b`.
fn limiter() -> Limiter {
    let quota = Quota::new().rpm(10).tpm(100);
    let limiter = builder().quota("*", quota).clock(ManualClock::new()).build().unwrap();
    for key in ["a", "b"] {
        limiter.try_acquire(key, &tokens(30)).unwrap().settle(&tokens(30));
    }
    limiter
}

#[test]
fn g16_stats_of_one_key_and_of_all_keys() {
    let limiter = limiter();
    let stats = limiter.stats("a");
    let amounts: Vec<_> =
        stats.limits.iter().map(|l| (l.used, l.limit, l.available, l.window)).collect();
    assert_eq!(amounts, [(1, 10, 9, Window::MINUTE), (30, 100, 70, Window::MINUTE)]);
    let all: Vec<_> = limiter.state().stats();
    assert_eq!(all, [("a".into(), stats.clone()), ("b".into(), stats)]);
}

#[test]
fn g16_reset_of_one_key_or_all_clears_usage() {
    let limiter = limiter();
    limiter.reset("a");
    assert_eq!((used(&limiter, "a"), used(&limiter, "b")), (vec![0, 0], vec![1, 30]));
    limiter.reset("never used");
    drop(limiter.try_acquire("a", &tokens(10)).unwrap());
    limiter.reset_all();
    assert_eq!((used(&limiter, "a"), used(&limiter, "b")), (vec![0, 0], vec![0, 0]));
    assert!(limiter.state().snapshot().is_empty());
    assert_eq!(limiter.stats("b").limits[1].limit, 100, "the quota is kept");
}

#[test]
fn g16_reset_ends_cool_down_and_keeps_held_amounts() {
    let limiter = limiter();
    let permit = limiter.try_acquire("a", &tokens(60)).unwrap();
    limiter.feedback().rate_limited("a", &RateLimited::new(Some(Duration::from_secs(600))));
    assert_eq!(limiter.decide("a", &Cost::new()).code, Code::CoolingDown);
    limiter.reset("a");
    assert_eq!((used(&limiter, "a"), held(&limiter, "a")), (vec![0, 0], vec![0, 60]));
    assert_eq!(limiter.decide("a", &tokens(41)).code, Code::TpmExceeded);
    assert_eq!(limiter.decide("a", &tokens(40)).code, Code::Ok);
    permit.settle(&tokens(20));
    assert_eq!((used(&limiter, "a")[1], held(&limiter, "a")[1]), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn g16_reset_admits_waiters_immediately() {
    let limiter = paused(Quota::new().rpm(2));
    let begin = limiter.now();
    drop(limiter.acquire("k", &Cost::new().requests(2)).await.unwrap());
    let waiters = [0; 2].map(|_| waiter(&limiter, "k", &Cost::new()));
    settle_down().await;
    limiter.reset("k");
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn g16_reset_all_admits_waiters_of_every_key() {
    let limiter = builder().quota("*", Quota::new().rpm(1)).clock(TokioClock::new());
    let limiter = limiter.build().unwrap();
    let begin = limiter.now();
    let keys: Vec<_> = (0..50).map(|i| format!("key-{i}")).collect();
    let mut waiters = Vec::new();
    for key in &keys {
        drop(limiter.acquire(key, &Cost::new()).await.unwrap());
        waiters.push(waiter(&limiter, key, &Cost::new()));
    }
    settle_down().await;
    limiter.reset_all();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
    assert_eq!(seconds(&limiter, begin), 0);
}
