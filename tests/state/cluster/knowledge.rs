//! What a limiter says about usage that a server keeps.

use std::time::Duration;

use paceline::limiter::Backend;
use paceline::quota::{Cost, Quota};

use super::shared::{admitted, closed, limiter};
use paceline_testing::servers::Redis;
use paceline_testing::until;

#[tokio::test]
async fn refreshed_stats_and_decisions_are_those_of_the_store() {
    let mut redis = Redis::start();
    let connect = || closed(&redis.url()).timeout(Duration::from_secs(1)).connect().unwrap();
    let (one, other) = (connect(), connect());
    let (one, other) = (limiter(&one, Quota::new().rpd(10)), limiter(&other, Quota::new().rpd(10)));
    let permits = admitted(&one, 4);
    assert_eq!(permits.len(), 4);
    let unknown = other.stats("k");
    assert_eq!((unknown.limits[0].used, unknown.as_of), (0, None), "nothing is known yet");
    let before = other.now();
    other.state().refresh(&["k"]).await;
    let known = other.stats("k");
    assert_eq!(known.limits[0].used, 4);
    // The clock of the server is known to some milliseconds.
    assert!(known.as_of.unwrap() + Duration::from_secs(1) > before, "{known:?}");
    let seven = Cost::new().requests(7);
    assert!(!other.decide("k", &seven).is_allowed());
    assert!(other.decide("k", &Cost::new().requests(6)).is_allowed());
    redis.server().kill();
    other.state().refresh(&["k"]).await;
    let old = other.stats("k");
    assert_eq!(old.limits[0].used, 4);
    assert!(old.as_of.unwrap() < other.now());
    let later = other.decide("k", &seven).stats.as_of.unwrap();
    assert!(later.saturating_duration_since(known.as_of.unwrap()) < Duration::from_millis(500));
}

#[tokio::test]
async fn reset_says_whether_the_store_has_confirmed_it() {
    let redis = &mut Redis::start();
    let shared = closed(&redis.url()).timeout(Duration::from_millis(500)).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(10));
    drop(admitted(&limiter, 4));
    assert!(limiter.state().reset(Some("k")).await);
    limiter.state().refresh(&["k"]).await;
    assert_eq!(limiter.stats("k").limits[0].used, 0);
    drop(admitted(&limiter, 3));
    until("ends are acknowledged", || shared.status().unacknowledged == 0);
    redis.server().freeze();
    assert!(!limiter.state().reset(None).await, "no answer");
    redis.server().thaw();
    until("the reset is delivered", || shared.status().unacknowledged == 0);
    until("the store is back", || shared.status().connected);
    limiter.state().refresh(&["k"]).await;
    assert_eq!(limiter.stats("k").limits[0].used, 0);
    shared.close().await;
}
