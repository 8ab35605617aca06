//! Provider refusals: cool-down, restart, reduction and recovery of a key.

use std::sync::Arc;
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{Code, Limiter, ManualClock, RateLimited, Reduction, TokioClock};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::{S, builder, settle_down, tokens};
use paceline_testing::full::full_or;

fn steady() -> Reduction {
    Reduction::new().spread(Duration::ZERO)
}

fn manual(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let builder = builder().reduction(steady()).clock(clock.clone());
    (builder.quota("k", quota).build().unwrap(), clock)
}

fn bucket(quota: Quota) -> Quota {
    quota.with_algorithm(Algorithm::TokenBucket)
}

fn seconds(n: u64) -> RateLimited {
    RateLimited::new(Some(Duration::from_secs(n)))
}

fn amounts(limiter: &Limiter) -> Vec<u64> {
    limiter.stats("k").limits.iter().map(|limit| limit.limit).collect()
}

#[tokio::test(start_paused = true)]
async fn waiters_after_cool_down_restart_at_refill_pace() {
    let quota = bucket(Quota::new().rpm(120));
    let builder = builder().reduction(steady()).quota("k", quota);
    let limiter = builder.clock(TokioClock::new()).build().unwrap();
    limiter.feedback().rate_limited("k", &seconds(20));
    let (begin, granted) = (limiter.now(), Arc::new(Mutex::new(Vec::new())));
    for _ in 0..5 {
        let (limiter, granted) = (limiter.clone(), Arc::clone(&granted));
        tokio::spawn(async move {
            let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
            granted.lock().push((permit.granted_at() - begin).as_secs());
        });
    }
    settle_down().await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(*granted.lock(), [21, 22, 23, 24, 25]);
}

#[test]
fn refusal_while_cooling_down_names_time_of_first_fit() {
    let (limiter, clock) = manual(bucket(Quota::new().rpm(120)));
    limiter.feedback().rate_limited("k", &seconds(20));
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!(refused.code, Code::CoolingDown);
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(21)));
    clock.advance(Duration::from_secs(21));
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn cool_downs_of_several_limiters_end_at_different_times() {
    let mut ends: Vec<_> = (0..40)
        .map(|_| {
            let builder = Limiter::builder().clock(ManualClock::new());
            let limiter = builder.quota("k", Quota::new().rpm(9)).build().unwrap();
            limiter.feedback().rate_limited("k", &seconds(8));
            limiter.stats("k").cooling_until.unwrap() - limiter.now()
        })
        .collect();
    assert!(ends.iter().all(|end| (8 * S..=8 * S + S / 2).contains(end)), "{ends:?}");
    ends.sort_unstable();
    ends.dedup();
    assert!(ends.len() > 20, "{ends:?}");
}

#[test]
fn refusal_without_delay_backs_off_and_burst_counts_once() {
    let (limiter, clock) = manual(Quota::new().rpm(1_000));
    let mut delays = Vec::new();
    for _ in 0..8 {
        let sent_at = limiter.now();
        for _ in 0..3 {
            let refusal = RateLimited::new(None).sent_at(sent_at);
            limiter.feedback().rate_limited("k", &refusal);
        }
        let until = limiter.stats("k").cooling_until.unwrap();
        delays.push((until - limiter.now()).as_secs());
        clock.advance_to(until + Duration::from_nanos(1));
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 64]);
}

#[test]
fn refusal_until_reset_cools_down_without_reduction() {
    let (limiter, clock) = manual(bucket(Quota::new().rpm(100).rpd(1_000)));
    limiter.feedback().rate_limited("k", &seconds(3_600).until_reset());
    assert_eq!(amounts(&limiter), [100, 1_000]);
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(limiter.stats("k").limits[0].available, 100);
}

#[test]
fn refusal_with_dimension_reduces_only_named_dimension() {
    let quota = || bucket(Quota::new().rpm(100).tpm(1_000).concurrency(8));
    let (limiter, _) = manual(quota());
    limiter.feedback().rate_limited("k", &seconds(1).dimension(Dimension::Tokens));
    assert_eq!(amounts(&limiter), [100, 500, 8]);
    let (limiter, _) = manual(quota());
    limiter.feedback().rate_limited("k", &seconds(1).dimension(Dimension::InputTokens));
    assert_eq!(amounts(&limiter), [50, 500, 4]);
}

#[test]
fn reduced_key_accepts_costs_up_to_full_quota() {
    for quota in [bucket(Quota::new().tpm(100)), Quota::new().tpm(100)] {
        let (limiter, clock) = manual(quota);
        limiter.feedback().reduce("k", "429");
        let refused = limiter.try_acquire("k", &tokens(101)).unwrap_err();
        assert_eq!((refused.code, refused.wait), (Code::ExceedsCapacity, Wait::Never));
        assert!(refused.to_string().contains("allows at most 100;"), "{refused}");
        limiter.try_acquire("k", &tokens(80)).unwrap().settle(&tokens(80));
        clock.advance(Duration::from_secs(10));
        let wait = limiter.try_acquire("k", &tokens(80)).unwrap_err().wait;
        assert!(matches!(wait, Wait::At(_)), "{wait:?}");
    }
}

#[test]
fn reduction_ends_with_new_quota_or_reset() {
    let (limiter, _) = manual(bucket(Quota::new().rpm(100)));
    limiter.feedback().reduce("k", "429");
    limiter.quotas().set("k", &bucket(Quota::new().rpm(80))).unwrap();
    assert_eq!(amounts(&limiter), [80]);
    limiter.feedback().reduce("k", "429");
    limiter.reset("k");
    assert_eq!(amounts(&limiter), [80]);
    assert_eq!(limiter.stats("k").limits[0].used, 0);
}

#[test]
fn reduction_and_recovery_keep_used_and_held_amounts() {
    let (limiter, clock) = manual(Quota::new().tpm(100).concurrency(4));
    let permit = limiter.try_acquire("k", &tokens(30)).unwrap();
    limiter.feedback().reduce("k", "429");
    let amounts = |limiter: &Limiter| {
        let limits = limiter.stats("k").limits;
        limits.iter().map(|l| (l.limit, l.used, l.held)).collect::<Vec<_>>()
    };
    assert_eq!(amounts(&limiter), [(50, 0, 30), (2, 0, 1)]);
    clock.advance(Duration::from_secs(300));
    assert_eq!(amounts(&limiter), [(100, 0, 30), (4, 0, 1)]);
    permit.settle(&tokens(20));
    assert_eq!(amounts(&limiter), [(100, 20, 0), (4, 0, 0)]);
}

#[tokio::test(start_paused = true)]
async fn waiter_for_concurrency_is_admitted_by_recovery_step() {
    let builder = builder().reduction(steady()).quota("k", Quota::new().concurrency(2));
    let limiter = builder.clock(TokioClock::new()).build().unwrap();
    let begin = limiter.now();
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    limiter.feedback().reduce("k", "429");
    let permit = limiter.acquire("k", &Cost::new()).max_wait(Duration::from_secs(60)).await;
    assert_eq!((permit.unwrap().granted_at() - begin).as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn deadline_before_recovery_step_still_waits_for_permit() {
    let builder = builder().reduction(steady()).quota("k", Quota::new().concurrency(2));
    let limiter = builder.clock(TokioClock::new()).build().unwrap();
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    limiter.feedback().reduce("k", "429");
    let waits = limiter.acquire("k", &Cost::new()).max_wait(Duration::from_secs(10));
    let waits = tokio::spawn(waits);
    tokio::time::sleep(Duration::from_secs(5)).await;
    drop(held);
    assert!(waits.await.unwrap().is_ok());
}

#[test]
fn invalid_reduction_is_refused_with_allowed_range() {
    let error = |reduction| builder().reduction(reduction).build().unwrap_err().to_string();
    for factor in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(error(steady().factor(factor)).ends_with("set a value above 0 and below 1"));
    }
    for factor in [1.0, 0.5, f64::NAN, 1e9] {
        assert!(error(steady().recovery_factor(factor)).contains("from 1.01 to 1000"));
    }
    assert!(error(steady().interval(Duration::from_millis(999))).contains("of at least 1s"));
}

#[test]
fn smallest_recovery_steps_restore_full_limit_within_335() {
    let slowly = steady().interval(Duration::from_secs(1)).recovery_factor(1.01).factor(1e-6);
    let clock = ManualClock::new();
    let builder = builder().reduction(slowly).clock(clock.clone());
    let limiter = builder.quota("k", Quota::new().rpm(10_000_000)).build().unwrap();
    limiter.feedback().reduce("k", "429");
    assert_eq!(amounts(&limiter), [10]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(amounts(&limiter), [10 + 10_000_000 / 1_024]);
    clock.advance(Duration::from_secs(334));
    assert_eq!(amounts(&limiter), [10_000_000]);
}

#[test]
fn recovery_of_long_idle_key_fits_small_stack() {
    let slowly = steady().interval(Duration::from_secs(1)).recovery_factor(1.01).factor(1e-6);
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let clock = ManualClock::new();
        let quota = Quota::new().tpm(u64::MAX).rpm(u64::MAX).with_algorithm(algorithm);
        let builder = builder().reduction(slowly).clock(clock.clone()).quota("k", quota);
        let limiter = builder.build().unwrap();
        for _ in 0..4 {
            assert!(limiter.feedback().reduce("k", "429"));
            clock.advance(Duration::from_secs(11));
        }
        clock.advance(Duration::from_secs(86_400));
        let thread = std::thread::Builder::new().stack_size(64 * 1_024).spawn(move || {
            assert!(limiter.decide("k", &tokens(u64::MAX / 2)).is_allowed());
            assert_eq!(amounts(&limiter), [u64::MAX; 2]);
        });
        thread.unwrap().join().unwrap();
    }
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        Just(Algorithm::TokenBucket),
        Just(Algorithm::SlidingWindow),
        Just(Algorithm::FixedWindow),
        Just(Algorithm::ClockWindow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(full_or(100_000, 10_000)) })]

    /// P2 and P3 while a key recovers: the time named by a refusal is exact up to 90 s ahead, and
    /// after recovery the limit is whole and unused.
    #[test]
    fn p2_time_named_by_reduced_key_is_exact(
        algorithm in algorithms(),
        amount in 1..200_u64,
        window in prop_oneof![Just(7_u64), Just(60), Just(600)],
        cuts in 1..4_u32,
        used in 0..200_u64,
        cost in 1..200_u64,
        after in 0..100_u64,
    ) {
        let window = Window::new(Duration::from_secs(window)).unwrap();
        let limit = Limit::new(Dimension::Requests, amount, window).unwrap();
        let (limiter, clock) = manual(Quota::new().limit(limit.with_algorithm(algorithm)));
        let request = |n: u64| Cost::new().requests(n);
        for _ in 0..cuts {
            limiter.feedback().reduce("k", "429");
            clock.advance(Duration::from_secs(11));
        }
        drop(limiter.try_acquire("k", &request(used.max(1))));
        clock.advance(Duration::from_secs(after));
        if let Err(refused) = limiter.try_acquire("k", &request(cost)) {
            match refused.wait {
                Wait::Never => prop_assert!(cost > amount),
                Wait::Unknown => prop_assert!(false, "no request is in flight"),
                Wait::At(time) if time < limiter.now() + 90 * S => {
                    clock.advance_to(time - Duration::from_nanos(1));
                    prop_assert!(limiter.decide("k", &request(cost)).wait.is_some());
                    clock.advance(Duration::from_nanos(1));
                    prop_assert!(limiter.try_acquire("k", &request(cost)).is_ok());
                }
                Wait::At(_) => {}
            }
        }
        clock.advance(Duration::from_secs(86_400));
        let stats = limiter.stats("k");
        prop_assert_eq!((stats.limits[0].limit, stats.limits[0].used), (amount, 0));
    }
}

#[test]
fn reduction_during_cool_down_keeps_the_end() {
    let (limiter, clock) = manual(bucket(Quota::new().rpm(120)));
    limiter.feedback().rate_limited("k", &seconds(600));
    clock.advance(Duration::from_secs(11));
    assert!(limiter.feedback().reduce("k", "429"));
    // At 30 per minute.
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(600 - 11 + 2)));
    limiter.quotas().set("k", &bucket(Quota::new().rpm(6))).unwrap();
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert!(refused.retry_after().unwrap() <= Duration::from_secs(600 + 60 * 20), "{refused}");
}

#[test]
fn used_up_bucket_after_refusal_is_empty_without_debt() {
    let (limiter, clock) = manual(bucket(Quota::new().rpm(120)));
    (0..120).for_each(|_| drop(limiter.try_acquire("k", &Cost::new()).unwrap()));
    limiter.feedback().rate_limited("k", &seconds(1));
    clock.advance(Duration::from_secs(2));
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
}
