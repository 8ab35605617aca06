//! Turns in the queues of keys, with priorities and flows: every waiter is woken when its turn comes.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use paceline::limiter::{Acquire, Limiter, Priority, TokioClock, WaitPolicy};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota};
use paceline_testing::full::full_or;
use parking_lot::Mutex;

use super::random::Random;
use super::{S, builder, paused, settle_down};

/// The names and the seconds of grants.
type Grants = Arc<Mutex<Vec<(&'static str, u64)>>>;

/// Starts a task that acquires, and holds its permit for ever.
async fn start(limiter: &Limiter, acquire: Acquire, name: &'static str, grants: &Grants) {
    let (limiter, grants, begin) = (limiter.clone(), Arc::clone(grants), limiter.now());
    tokio::spawn(async move {
        let permit = acquire.await.unwrap();
        grants.lock().push((name, (limiter.now() - begin).as_secs()));
        pending::<()>().await;
        drop(permit);
    });
    settle_down().await;
}

/// Uses up a quota of 60 requests.
async fn use_up(limiter: &Limiter) {
    let cost = Cost::new().requests(60);
    limiter.acquire("k", &cost).await.unwrap().settle(&cost);
}

#[tokio::test(start_paused = true)]
async fn flow_next_in_turn_is_woken_while_permits_are_held() {
    let (limiter, grants) = (paused(Quota::new().rpm(60)), Grants::default());
    use_up(&limiter).await;
    for (name, flow) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        start(&limiter, limiter.acquire("k", &Cost::new()).flow(flow), name, &grants).await;
    }
    tokio::time::sleep(60 * S).await;
    assert_eq!(*grants.lock(), [("a1", 1), ("b1", 2), ("a2", 3), ("b2", 4)]);
}

#[tokio::test(start_paused = true)]
async fn displaced_head_is_woken_after_higher_priority() {
    let (limiter, grants) = (paused(Quota::new().rpm(60)), Grants::default());
    use_up(&limiter).await;
    for (name, priority) in [("low", Priority::BATCH), ("high", Priority::INTERACTIVE)] {
        start(&limiter, limiter.acquire("k", &Cost::new()).priority(priority), name, &grants).await;
    }
    let mut dropped = limiter.acquire("k", &Cost::new()).priority(Priority::new(20));
    assert!(dropped.arrive().is_none());
    drop(dropped);
    tokio::time::sleep(60 * S).await;
    assert_eq!(*grants.lock(), [("high", 1), ("low", 2)]);
}

/// A request that waits in the queue of another key doesn't see the turn of a starved priority there.
#[tokio::test(start_paused = true)]
async fn starved_request_is_not_passed_from_other_queues() {
    let two_a_second = |burst| {
        let limit = Limit::per_second(Dimension::Requests, 2).unwrap().with_burst(burst);
        Quota::new().limit(limit).with_algorithm(Algorithm::TokenBucket)
    };
    let policy = WaitPolicy::new().max_starvation(5 * S);
    let builder = builder().clock(TokioClock::new()).wait_policy(policy);
    let limiter = builder.quota("a", two_a_second(3)).quota("b", two_a_second(1)).build().unwrap();
    for _ in 0..4 {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            loop {
                let acquire = limiter.acquire_all(&["b", "a"], &Cost::new());
                acquire.priority(Priority::INTERACTIVE).await.unwrap().settle(&Cost::new());
            }
        });
    }
    let three = Cost::new().requests(3);
    limiter.acquire("a", &three).await.unwrap().settle(&three);
    tokio::time::sleep(S).await;
    let acquire = limiter.acquire("a", &three).priority(Priority::BATCH);
    tokio::time::timeout(10 * S, acquire).await.expect("the request starves").unwrap();
}

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Requests of tasks under three keys in crossing orders: each is admitted, and leaves nothing behind.
async fn check_crossing(seed: u64, has_standings: bool) {
    let quota = |amount, window| {
        let limit = Limit::per_second(Dimension::Requests, amount).unwrap().with_burst(window);
        Quota::new().limit(limit).concurrency(2).with_algorithm(Algorithm::TokenBucket)
    };
    let mut random = Random(seed);
    let mut builder = builder().clock(TokioClock::new());
    for key in KEYS {
        builder = builder.quota(key, quota(1 + random.below(4), 1 + random.below(2)));
    }
    let policy = WaitPolicy::new().max_starvation(Duration::from_millis(500 + random.below(3_000)));
    let limiter = builder.wait_policy(policy).build().unwrap();
    let tasks: Vec<_> = (0..6_u64)
        .map(|task| {
            let (limiter, mut random) = (limiter.clone(), Random(seed * 31 + task));
            tokio::spawn(async move {
                for _ in 0..8 {
                    let keys = random.some_of(&KEYS);
                    let mut acquire = limiter.acquire_all(&keys, &Cost::new());
                    if has_standings {
                        let flow = ["x", "y", "z"][random.below(3) as usize];
                        let priority = Priority::new(random.below(3) as i8);
                        acquire = acquire.flow(flow).priority(priority);
                    }
                    if random.below(4) == 0 {
                        let patience = Duration::from_millis(random.below(3_000));
                        let _ = tokio::time::timeout(patience, acquire).await;
                        continue;
                    }
                    let permit = acquire.await.unwrap();
                    tokio::time::sleep(Duration::from_millis(random.below(700))).await;
                    permit.settle(&Cost::new());
                }
            })
        })
        .collect();
    for task in tasks {
        let ended = tokio::time::timeout(3_600 * S, task).await;
        assert!(ended.is_ok(), "a request of seed {seed} is never admitted: {has_standings}");
        ended.unwrap().unwrap();
    }
    for key in KEYS {
        let stats = limiter.stats(key);
        assert_eq!(stats.waiting, 0);
        assert!(stats.limits.iter().all(|limit| limit.held == 0), "{stats:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_three_keys_in_crossing_orders_all_end() {
    for seed in 0..full_or(100_000, 150) {
        check_crossing(seed, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_crossing_keys_with_flows_and_priorities_all_end() {
    // In the first seed, requests waited for each other's claims.
    for seed in std::iter::once(12_546).chain(0..full_or(100_000, 150)) {
        check_crossing(seed, true).await;
    }
}
