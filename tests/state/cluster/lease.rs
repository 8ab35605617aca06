//! Leases of a shared limit on a real server.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Shared, SharingMode};
use paceline::limiter::Limiter;
use paceline::quota::{Cost, Dimension, Limit, Margin, Quota, Window};

use paceline_testing::servers::Redis;

/// Returns a limiter in lease mode.
pub(super) fn limiter(url: &str, quota: Quota) -> (Limiter, Arc<Shared>) {
    let shared = Shared::builder(url, "team").mode(SharingMode::Lease).lease(LEASE);
    // A busy machine is not an outage.
    let shared = shared.timeout(PATIENCE).connect().unwrap();
    let limiter = Limiter::builder().quota("k*", quota).margin(Margin::NONE);
    let limiter = limiter.backend(Arc::clone(&shared) as _).build().unwrap();
    (limiter, shared)
}

pub(super) fn hourly(amount: u64) -> Quota {
    Quota::new().limit(Limit::new(Dimension::Requests, amount, Window::HOUR).unwrap())
}

/// Sends requests until none is admitted for three lease durations; returns the number admitted.
pub(super) fn admit_all(limiter: &Limiter) -> u64 {
    let (mut count, mut last) = (0, limiter.now());
    while limiter.now() - last < 3 * LEASE {
        if limiter.try_acquire("k", &Cost::new()).is_ok() {
            (count, last) = (count + 1, limiter.now());
        } else {
            std::thread::yield_now();
        }
    }
    count
}

#[test]
fn two_limiters_share_one_limit_by_leases_with_few_calls() {
    let redis = Redis::start();
    let (one, of_one) = limiter(&redis.url(), hourly(5_000));
    let (two, of_two) = limiter(&redis.url(), hourly(5_000));
    let taken = |limiter: &Limiter, most: usize| {
        (0..most).filter(|_| limiter.try_acquire("k", &Cost::new()).is_ok()).count() as u64
    };
    let early = taken(&one, 1_000) + taken(&two, 1_000);
    let calls = of_one.status().decided + of_two.status().decided;
    assert!(early > 1_500 && calls < early / 4, "{calls} calls for {early} requests");
    let rest = std::thread::scope(|scope| {
        let other = scope.spawn(|| admit_all(&one));
        admit_all(&two) + other.join().unwrap()
    });
    assert_eq!(early + rest, 5_000);
}

#[test]
fn closed_limiter_returns_leased_amount() {
    let redis = Redis::start();
    let (one, _shared) = limiter(&redis.url(), hourly(100));
    let (two, _) = limiter(&redis.url(), hourly(100));
    (0..10).for_each(|_| drop(one.try_acquire("k", &Cost::new()).unwrap()));
    runtime().block_on(one.close());
    let rest = (0..200).filter(|_| two.try_acquire("k", &Cost::new()).is_ok()).count();
    assert_eq!(rest, 90);
}

#[test]
fn unused_lease_is_returned() {
    let redis = Redis::start();
    let (one, _shared) = limiter(&redis.url(), hourly(60));
    let (two, _) = limiter(&redis.url(), hourly(60));
    (0..20).for_each(|_| drop(one.try_acquire("k", &Cost::new()).unwrap()));
    assert_eq!(admit_all(&two), 40);
}

#[test]
fn request_under_several_keys_takes_all_leases_or_none() {
    let redis = Redis::start();
    let (limiter, _shared) = limiter(&redis.url(), hourly(30));
    let both = || limiter.acquire_all(&["k1", "k2"], &Cost::new()).try_now();
    (0..20).for_each(|_| drop(both().unwrap()));
    (0..10).for_each(|_| drop(limiter.try_acquire("k2", &Cost::new()).unwrap()));
    (0..50).for_each(|_| drop(both().unwrap_err()));
    (0..10).for_each(|_| drop(limiter.try_acquire("k1", &Cost::new()).unwrap()));
    assert!(limiter.try_acquire("k1", &Cost::new()).is_err());
}

#[test]
fn keys_with_concurrency_limit_stay_exact() {
    let redis = Redis::start();
    let quota = || hourly(1_000).concurrency(2);
    let (one, of_one) = limiter(&redis.url(), quota());
    let (two, _) = limiter(&redis.url(), quota());
    let held =
        [one.try_acquire("k", &Cost::new()).unwrap(), two.try_acquire("k", &Cost::new()).unwrap()];
    assert!(one.try_acquire("k", &Cost::new()).is_err());
    drop(held);
    assert_eq!(of_one.status().decided, 2);
}

#[test]
fn lease_is_used_while_server_is_unavailable() {
    let mut redis = Redis::start();
    let (limiter, shared) = limiter(&redis.url(), hourly(1_000_000));
    let begin = limiter.now();
    while limiter.now() - begin < LEASE {
        drop(limiter.try_acquire("k", &Cost::new()));
    }
    redis.server().kill();
    let granted = (0..10).filter(|_| limiter.try_acquire("k", &Cost::new()).is_ok()).count();
    assert_eq!(granted, 10);
    assert_eq!(shared.status().degraded_local, 0);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(super) const LEASE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(5);
