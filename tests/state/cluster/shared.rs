//! Limits that several limiters share through one server.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{OnFailure, Shared, SharedBuilder, SharedError};
use paceline::limiter::{Backend, Limiter};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};

use super::logs::{lines, record};
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// Returns a builder that refuses requests while the store is unavailable, so that only the store
/// admits, with a timeout for a machine that is busy with other tests.
pub(super) fn closed(url: &str) -> SharedBuilder {
    let builder = Shared::builder(url, "account").on_failure(OnFailure::Closed);
    builder.timeout(Duration::from_secs(2))
}

pub(super) fn limiter(shared: &Arc<Shared>, quota: Quota) -> Limiter {
    let backend = Arc::clone(shared) as Arc<dyn Backend>;
    let builder = Limiter::builder().margin(Margin::NONE).quota("*", quota);
    builder.backend(backend).build().unwrap()
}

/// Returns the permits of the requests admitted now, one after another.
pub(super) fn admitted(limiter: &Limiter, most: usize) -> Vec<paceline::limiter::Permit> {
    std::iter::from_fn(|| limiter.try_acquire("k", &Cost::new()).ok()).take(most).collect()
}

#[test]
fn two_limiters_on_one_account_share_one_limit() {
    let redis = Redis::start();
    let quota = || Quota::new().rpd(10);
    let (one, other) =
        (closed(&redis.url()).connect().unwrap(), closed(&redis.url()).connect().unwrap());
    let (one, other) = (limiter(&one, quota()), limiter(&other, quota()));
    let mut granted = 0;
    for round in 0..20 {
        let limiter = if round % 2 == 0 { &one } else { &other };
        granted += usize::from(limiter.try_acquire("k", &Cost::new()).is_ok());
    }
    assert_eq!(granted, 10);
    assert!(one.try_acquire("another", &Cost::new()).is_ok(), "another key has a separate limit");
}

/// Returns a quota of this many requests in a sliding window.
fn window(requests: u64, seconds: u64) -> Quota {
    let window = Window::new(Duration::from_secs(seconds)).unwrap();
    let limit = Limit::new(Dimension::Requests, requests, window).unwrap();
    Quota::new().limit(limit.with_algorithm(Algorithm::SlidingWindow))
}

#[test]
fn window_changed_at_run_time_counts_usage_of_the_old_one() {
    let redis = Redis::start();
    let limiter = limiter(&closed(&redis.url()).connect().unwrap(), window(60, 400));
    assert_eq!(admitted(&limiter, 100).len(), 60);
    limiter.quotas().set("*", &window(60, 800)).unwrap();
    assert_eq!(admitted(&limiter, 100).len(), 0);
    limiter.quotas().set("*", &window(70, 300)).unwrap();
    assert_eq!(admitted(&limiter, 100).len(), 10);
}

#[test]
fn windows_that_two_limiters_state_both_count_and_are_logged() {
    record();
    let redis = Redis::start();
    let [one, other] = [100, 200]
        .map(|seconds| limiter(&closed(&redis.url()).connect().unwrap(), window(10, seconds)));
    let key = redis.url();
    let limiters = [&one, &other].into_iter().cycle().take(40);
    let granted = limiters.filter(|limiter| limiter.try_acquire(&key, &Cost::new()).is_ok());
    assert_eq!(granted.count(), 10);
    let logged = lines(&key);
    assert!(logged.iter().any(|line| line.contains("other windows")), "{logged:?}");
}

#[test]
fn two_accounts_have_separate_limits() {
    let redis = Redis::start();
    let one = limiter(&closed(&redis.url()).connect().unwrap(), Quota::new().rpd(3));
    let other = Shared::builder(redis.url(), "other").connect().unwrap();
    let other = limiter(&other, Quota::new().rpd(3));
    assert_eq!(admitted(&one, 9).len(), 3);
    assert_eq!(admitted(&other, 9).len(), 3);
}

#[test]
fn request_under_several_keys_reserves_all_or_none() {
    for spread in [false, true] {
        let redis = Redis::start();
        let builder = closed(&redis.url());
        let shared = if spread { builder.spread() } else { builder }.connect().unwrap();
        let backend = Arc::clone(&shared) as Arc<dyn Backend>;
        let limiter = Limiter::builder()
            .margin(Margin::NONE)
            .quota("wide", Quota::new().rpd(9))
            .quota("narrow", Quota::new().concurrency(1))
            .backend(backend)
            .build()
            .unwrap();
        let both = || limiter.acquire_all(&["wide", "narrow"], &Cost::new()).try_now();
        let first = both().unwrap();
        for _ in 0..5 {
            assert!(both().is_err());
        }
        until("the refund is acknowledged", || shared.status().unacknowledged == 0);
        drop(first);
        until("the end is acknowledged", || shared.status().unacknowledged == 0);
        let wide = std::iter::from_fn(|| limiter.try_acquire("wide", &Cost::new()).ok());
        assert_eq!(wide.take(20).count(), 8, "spread: {spread}");
    }
}

#[test]
fn amount_settled_or_released_is_available_to_other_limiter() {
    let redis = Redis::start();
    let quota = || Quota::new().tpd(1_000);
    let shared = closed(&redis.url()).connect().unwrap();
    let one = limiter(&shared, quota());
    let other = limiter(&closed(&redis.url()).connect().unwrap(), quota());
    let first = one.try_acquire("k", &Cost::new().tokens(600)).unwrap();
    let second = one.try_acquire("k", &Cost::new().tokens(400)).unwrap();
    assert!(other.try_acquire("k", &Cost::new().tokens(1)).is_err());
    first.settle(&Cost::new().tokens(100));
    second.release();
    until("both ends are acknowledged", || shared.status().unacknowledged == 0);
    assert!(other.try_acquire("k", &Cost::new().tokens(901)).is_err());
    assert!(other.try_acquire("k", &Cost::new().tokens(900)).is_ok());
}

#[tokio::test]
async fn waiter_is_admitted_when_permit_elsewhere_ends() {
    let redis = Redis::start();
    let quota = || Quota::new().concurrency(1);
    let one = limiter(&closed(&redis.url()).connect().unwrap(), quota());
    let shared = closed(&redis.url()).connect().unwrap();
    let other = limiter(&shared, quota());
    let permit = one.acquire("k", &Cost::new()).await.unwrap();
    let waiting = tokio::spawn(other.acquire("k", &Cost::new()));
    while shared.status().decided == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    permit.release();
    waiting.await.unwrap().unwrap();
}

#[test]
fn server_restarted_empty_grants_no_quota_twice() {
    let mut redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(10).concurrency(100));
    let permits = admitted(&limiter, 7);
    assert_eq!(permits.len(), 7);
    redis.restart();
    until("the lost connection is noticed", || {
        limiter.try_acquire("another", &Cost::new()).is_err() || shared.status().outages > 0
    });
    until("the server is back", || shared.status().connected);
    assert_eq!(admitted(&limiter, 20).len(), 3);
}

#[test]
fn requests_in_flight_are_restored_in_empty_server() {
    let mut redis = Redis::start();
    let builder = || closed(&redis.url()).reservation_ttl(Duration::from_secs(1));
    let (shared, others) = (builder().connect().unwrap(), builder().connect().unwrap());
    let one = limiter(&shared, Quota::new().concurrency(1));
    let other = limiter(&others, Quota::new().concurrency(1));
    let permit = one.try_acquire("k", &Cost::new()).unwrap();
    redis.restart();
    let connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    let connection = RefCell::new(connection);
    until("the reservation is restored", || {
        let exists = redis::cmd("EXISTS").arg("paceline:{account}:k").to_owned();
        exists.query(&mut *connection.borrow_mut()).unwrap()
    });
    until("the other is connected", || others.status().connected);
    let decided = others.status().decided;
    assert!(other.try_acquire("k", &Cost::new()).is_err());
    assert!(others.status().decided > decided, "the decision is the store's");
    drop(permit);
    until("the end is acknowledged", || shared.status().unacknowledged == 0);
    assert!(other.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn threads_without_runtime_can_use_shared_limits() {
    let redis = Redis::start();
    let limiter = limiter(&closed(&redis.url()).connect().unwrap(), Quota::new().rpd(100));
    let granted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| admitted(&limiter, 50).len())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(granted, 100);
}

#[test]
fn members_are_counted_while_connected() {
    let redis = Redis::start();
    let connect = || closed(&redis.url()).connect().unwrap();
    let (one, other) = (connect(), connect());
    let third = connect();
    until("all are counted", || one.status().members == 3 && other.status().members == 3);
    drop(third);
    until("one is gone", || one.status().members == 2);
}

#[tokio::test]
async fn closed_limiter_has_reported_all_ends() {
    let redis = Redis::start();
    let shared = closed(&redis.url()).connect().unwrap();
    let one = limiter(&shared, Quota::new().concurrency(50));
    let permits = admitted(&one, 50);
    assert_eq!(permits.len(), 50);
    drop(permits);
    shared.close().await;
    assert_eq!(shared.status().unacknowledged, 0);
    let other = limiter(&closed(&redis.url()).connect().unwrap(), Quota::new().concurrency(50));
    assert_eq!(admitted(&other, 99).len(), 50);
}

#[test]
fn server_unavailable_at_start_is_connected_later() {
    let mut redis = Redis::start();
    redis.server().kill();
    let shared = closed(&redis.url()).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(10));
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    redis.restart();
    until("the server is found", || shared.status().connected);
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn invalid_url_is_an_error_without_password() {
    for url in [
        "redis:/secret@h",
        "http://u:secret@h",
        "redis://u:secret@h:port",
        "redis-sentinel://u:secret@h:1",
        "redis-cluster://u:secret@h:1,h:port",
        "redis-another://u:secret@h:1",
        "unix-cluster://u:secret@h:1",
        "",
    ] {
        let error = Shared::builder(url, "a").connect().unwrap_err();
        assert!(matches!(error, SharedError::Url(_)), "{url}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    }
    let builder = Shared::builder("redis://u:secret@127.0.0.1:1", "a");
    let shared = builder.clone().connect().unwrap();
    assert!(!format!("{builder:?} {shared:?}").contains("secret"));
    assert!(Shared::builder("redis://127.0.0.1", "").connect().is_err());
}
