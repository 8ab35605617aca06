//! Open requests and admissions while the store is unavailable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::cluster::{OnFailure, Shared};
use paceline::engine::Wait;
use paceline::limiter::{Backend, Measured, Measurement};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota};

use super::failure::{connect_with_default_timeout, wait_until_connected};
use super::faults::proxy::Proxy as CutProxy;
use super::logs::{lines, record};
use super::proxy::Proxy;
use super::shared::{admitted, closed, limiter};
use paceline_limiter::seam;
use paceline_testing::servers::Redis;
use paceline_testing::until;

#[test]
fn requests_admitted_in_outage_are_charged_afterwards() {
    let mut redis = Redis::start();
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::Open);
    let limiter = limiter(&shared, Quota::new().rpd(20).tpd(10_000));
    let tokens = |amount| Cost::new().tokens(amount);
    assert!(limiter.try_acquire("k", &tokens(1_000)).is_ok());
    redis.server().kill();
    let early = limiter.try_acquire("k", &tokens(1_000)).unwrap();
    let late = limiter.try_acquire("k", &tokens(1_000)).unwrap();
    limiter.try_acquire("k", &tokens(5_000)).unwrap().release();
    early.settle(&tokens(500));
    redis.restart();
    wait_until_connected(&shared);
    // 1,000 before, 500 and 1,000 during the outage.
    assert!(limiter.try_acquire("k", &tokens(7_501)).is_err());
    late.settle(&tokens(3_000));
    until("the additional usage is acknowledged", || shared.status().unacknowledged == 0);
    assert!(limiter.try_acquire("k", &tokens(5_501)).is_err());
    assert!(limiter.try_acquire("k", &tokens(5_500)).is_ok());
    assert_eq!(admitted(&limiter, 20).len(), 16, "one before, two during, one after the outage");
}

#[test]
fn open_charges_what_limits_have_left_and_counts_the_rest() {
    let mut redis = Redis::start();
    let connect = || connect_with_default_timeout(&redis.url(), OnFailure::Open);
    let two = [connect(), connect()];
    let quota = || Quota::new().rpm(600).rpd(10_000).with_algorithm(Algorithm::TokenBucket);
    let limiters = two.each_ref().map(|shared| limiter(shared, quota()));
    two.iter().for_each(|shared| wait_until_connected(shared));
    redis.server().kill();
    for limiter in &limiters {
        assert_eq!(admitted(limiter, 2_000).len(), 2_000);
    }
    redis.restart();
    two.iter().for_each(|shared| wait_until_connected(shared));
    let uncharged: u64 = two.iter().map(|shared| shared.status().uncharged_requests).sum();
    // A minute's burst is charged, and what refilled between the two charges.
    assert!((3_000..=3_400).contains(&uncharged), "{uncharged}");
    let metrics: Vec<_> = limiters.iter().flat_map(seam::measurements).collect();
    let expected = |shared: &Arc<Shared>| {
        let total = Measured::Total(shared.status().uncharged_requests);
        Measurement::new("paceline_cluster_uncharged_total", total).with_label("requests")
    };
    assert!(two.iter().all(|shared| metrics.contains(&expected(shared))), "{metrics:?}");
    for (limiter, shared) in limiters.iter().zip(&two) {
        let decided = shared.status().decided;
        if let Err(refused) = limiter.try_acquire("k", &Cost::new()) {
            let Wait::At(time) = refused.wait else { panic!("{refused}") };
            assert!(time - refused.asked_at <= Duration::from_millis(200), "{refused}");
        }
        assert!(shared.status().decided > decided, "the store decides");
    }
    // The day's limit had enough left: it is charged in full.
    let limits = limiters[0].stats("k").limits;
    assert!(limits[1].used >= 4_000, "{limits:?}");
}

#[test]
fn outage_limits_each_member_to_local_share() {
    let mut redis = Redis::start();
    let three: Vec<_> =
        (0..3).map(|_| connect_with_default_timeout(&redis.url(), OnFailure::LocalShare)).collect();
    until("all are counted", || three.iter().all(|shared| shared.status().members == 3));
    let limiters: Vec<_> =
        three.iter().map(|shared| limiter(shared, Quota::new().rpd(30))).collect();
    // Each member knows the usage.
    for limiter in &limiters {
        assert_eq!(admitted(limiter, 2).len(), 2);
    }
    for limiter in &limiters {
        limiter.try_acquire("k", &Cost::new().requests(0)).unwrap().release();
    }
    redis.server().kill();
    // Of the remaining 24, 8 each.
    for limiter in &limiters {
        assert_eq!(admitted(limiter, 30).len(), 8);
    }
    redis.restart();
    three.iter().for_each(|shared| wait_until_connected(shared));
    for limiter in &limiters {
        assert_eq!(admitted(limiter, 30).len(), 0);
    }
}

/// Lets three members ask until each was admitted in an outage, for a limit of less than one unit each. Returns
/// the times just before and after each admission.
fn take_turns(limit: &Limit) -> Vec<(Instant, Instant)> {
    let mut redis = Redis::start();
    let three: Vec<_> = (0..3)
        .map(|_| {
            let builder = Shared::builder(redis.url(), "account").on_failure(OnFailure::LocalShare);
            builder.reservation_ttl(Duration::from_secs(1)).connect().unwrap()
        })
        .collect();
    until("all are counted", || three.iter().all(|shared| shared.status().members == 3));
    let limiters: Vec<_> =
        three.iter().map(|shared| limiter(shared, Quota::new().limit(limit.clone()))).collect();
    redis.server().kill();
    let (mut granted, mut times, begin) = ([0; 3], Vec::new(), Instant::now());
    while granted.contains(&0) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{granted:?}");
        for (limiter, granted) in limiters.iter().zip(&mut granted) {
            let asked = Instant::now();
            if let Ok(permit) = limiter.try_acquire("k", &Cost::new()) {
                times.push((asked, Instant::now()));
                *granted += 1;
                // Keeps its place in flight until the next turn of this member.
                std::mem::forget(permit);
            }
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    times
}

#[test]
fn members_with_less_than_one_unit_take_turns() {
    let limit = Limit::per_second(Dimension::Requests, 1).unwrap();
    let limits = [
        limit.clone().with_algorithm(Algorithm::SlidingWindow),
        limit.with_algorithm(Algorithm::TokenBucket),
        Limit::concurrent(1).unwrap(),
    ];
    std::thread::scope(|scope| {
        for limit in limits {
            scope.spawn(move || {
                let times = take_turns(&limit);
                for pair in times.windows(2) {
                    assert!(
                        pair[1].1 - pair[0].0 >= Duration::from_secs(1),
                        "{limit:?}: {times:?}"
                    );
                }
            });
        }
    });
}

#[tokio::test]
async fn request_waits_for_the_turn_of_its_member() {
    let mut redis = Redis::start();
    let two: Vec<_> =
        (0..2).map(|_| connect_with_default_timeout(&redis.url(), OnFailure::LocalShare)).collect();
    until("both are counted", || two.iter().all(|shared| shared.status().members == 2));
    let quota = Quota::new().limit(Limit::per_second(Dimension::Requests, 1).unwrap());
    let limiters: Vec<_> = two.iter().map(|shared| limiter(shared, quota.clone())).collect();
    redis.server().kill();
    let mut granted = Vec::new();
    for limiter in [&limiters[0], &limiters[1]] {
        let asked = Instant::now();
        let permit = limiter.acquire("k", &Cost::new()).max_wait(Duration::from_secs(20)).await;
        granted.push((asked, Instant::now()));
        drop(permit.unwrap());
    }
    let apart = granted[1].1 - granted[0].0;
    assert!(apart >= Duration::from_secs(1), "{apart:?} apart");
}

#[test]
fn quota_changed_in_outage_keeps_share_and_debt() {
    let mut redis = Redis::start();
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::LocalShare);
    let limiter = limiter(&shared, Quota::new());
    limiter.quotas().set("k", &Quota::new().rpd(10).tpd(1_000)).unwrap();
    wait_until_connected(&shared);
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    redis.server().kill();
    assert_eq!(admitted(&limiter, 5).len(), 5);
    limiter.quotas().set("k", &Quota::new().tpd(1_000).rpd(11)).unwrap();
    assert_eq!(admitted(&limiter, 3).len(), 3);
    limiter.quotas().set("k", &Quota::new().rpd(11)).unwrap();
    assert_eq!(admitted(&limiter, 20).len(), 2);
    redis.restart();
    wait_until_connected(&shared);
    assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    limiter.quotas().set("k", &Quota::new().rpd(12)).unwrap();
    assert_eq!(admitted(&limiter, 20).len(), 1, "all admissions were charged");
}

#[tokio::test]
async fn close_during_brief_outage_reports_all_usage() {
    let mut redis = Redis::start();
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::Open);
    let one = limiter(&shared, Quota::new().rpd(100));
    wait_until_connected(&shared);
    redis.server().freeze();
    for _ in 0..50 {
        one.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    }
    let closing = shared.close();
    redis.server().thaw();
    closing.await;
    drop((one, shared));
    let direct = closed(&redis.url()).connect().unwrap();
    assert_eq!(admitted(&limiter(&direct, Quota::new().rpd(100)), 200).len(), 50);
}

#[test]
fn open_reservation_is_renewed_and_abandoned_one_expires() {
    let mut redis = Redis::start();
    let connect = |url: &str| {
        let builder = closed(url).reservation_ttl(Duration::from_secs(1));
        builder.connect().unwrap()
    };
    let proxy = Proxy::start(redis.server().address, u64::MAX);
    let shared = connect(&redis.url());
    let gone = connect(&format!("redis://{}", proxy.address));
    let quota = || Quota::new().concurrency(2).tpd(100);
    let one = limiter(&shared, quota());
    let other = limiter(&gone, quota());
    let kept = one.try_acquire("k", &Cost::new().tokens(10)).unwrap();
    let _lost = other.try_acquire("k", &Cost::new().tokens(30)).unwrap();
    proxy.close();
    assert!(one.try_acquire("k", &Cost::new()).is_err(), "two reservations are open");
    // The abandoned reservation expires after a second, its held amount counts as used.
    until("the abandoned reservation expires", || one.try_acquire("k", &Cost::new()).is_ok());
    assert!(one.try_acquire("k", &Cost::new().tokens(61)).is_err());
    kept.settle(&Cost::new().tokens(0));
    until("the end is acknowledged", || shared.status().unacknowledged == 0);
    assert!(one.try_acquire("k", &Cost::new().tokens(71)).is_err());
    assert!(one.try_acquire("k", &Cost::new().tokens(70)).is_ok());
}

#[test]
fn request_that_ends_after_its_reservation_expired_is_logged() {
    record();
    let mut redis = Redis::start();
    let proxy = CutProxy::start(redis.server().address);
    let [shared, direct] = [format!("redis://{}", proxy.address), redis.url()]
        .map(|url| closed(&url).reservation_ttl(Duration::from_secs(1)).connect().unwrap());
    let quota = || Quota::new().concurrency(1).tpd(100);
    let (one, other) = (limiter(&shared, quota()), limiter(&direct, quota()));
    let key = redis.url();
    let permit = one.try_acquire(&key, &Cost::new().tokens(30)).unwrap();
    proxy.cut();
    until("the reservation expires", || other.try_acquire(&key, &Cost::new()).is_ok());
    permit.settle(&Cost::new().tokens(1));
    proxy.mend();
    until("the end is reported", || shared.status().unacknowledged == 0);
    let logged = lines(&key);
    assert!(logged.iter().any(|line| line.contains("counts as reserved")), "{logged:?}");
    assert!(other.try_acquire(&key, &Cost::new().tokens(71)).is_err());
}

#[tokio::test]
async fn waiter_during_outage_is_admitted_when_store_returns() {
    let mut redis = Redis::start();
    let shared = connect_with_default_timeout(&redis.url(), OnFailure::Closed);
    let limiter = limiter(&shared, Quota::new().rpd(5));
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    redis.server().freeze();
    let waiting = tokio::spawn(limiter.acquire("k", &Cost::new()));
    while shared.status().degraded_closed < 3 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    redis.server().thaw();
    waiting.await.unwrap().unwrap();
}
