//! Changes of the limiter while services wait at their gates, or hold claims.

use std::time::Duration;

use paceline::limiter::{AcquireError, Limiter};
use paceline::middleware::RateLimitError;
use paceline::quota::{Algorithm, Cost, Quota};
use tower::{Layer, Service, ServiceExt};

use super::turns::use_up;
use super::{S, echo, is_ready, limiter, settle_down, tokens};

/// Returns a limiter of one request a second, all of whose burst of 60 is used.
async fn used_up() -> Limiter {
    let limiter = limiter(Quota::new().rpm(60));
    use_up(&limiter, &Cost::new().requests(60)).await;
    limiter
}

/// Spawns services that wait at their gates and send a request each.
async fn services(
    limiter: &Limiter,
    count: usize,
) -> Vec<tokio::task::JoinHandle<Result<u64, RateLimitError>>> {
    let layer = tokens(limiter).key("k");
    let services = (0..count).map(|_| tokio::spawn(layer.layer(echo()).oneshot(1)));
    let services = services.collect();
    settle_down().await;
    services
}

#[tokio::test(start_paused = true)]
async fn raised_quota_opens_waiting_gates() {
    let limiter = used_up().await;
    let services = services(&limiter, 5).await;
    let begin = limiter.now();
    limiter.quotas().set("k", &Quota::new().rpm(60_000)).unwrap();
    for service in services {
        service.await.unwrap().unwrap();
    }
    assert!(limiter.now() - begin <= Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn lowered_quota_delays_waiting_gates() {
    let limiter = used_up().await;
    let services = services(&limiter, 3).await;
    // One request each 10 s; the 60 requests stay used, and the burst is 6.
    let lower = Quota::new().rpm(6).with_algorithm(Algorithm::TokenBucket);
    limiter.quotas().set("k", &lower).unwrap();
    let begin = limiter.now();
    for service in services {
        service.await.unwrap().unwrap();
    }
    let waited = limiter.now() - begin;
    assert!(waited > 569 * S && waited <= 571 * S, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn removed_quota_opens_waiting_gates() {
    let limiter = used_up().await;
    let services = services(&limiter, 5).await;
    let begin = limiter.now();
    limiter.quotas().remove("k");
    for service in services {
        service.await.unwrap().unwrap();
    }
    assert_eq!(limiter.now(), begin);
}

#[tokio::test(start_paused = true)]
async fn limiter_closed_beside_claim_and_gates_ends_all() {
    let limiter = used_up().await;
    let layer = tokens(&limiter).key("k");
    let mut claiming = layer.layer(echo());
    assert!(!is_ready(&mut claiming).await);
    let services = services(&limiter, 3).await;
    tokio::time::sleep(S).await;
    limiter.close().await;
    let is_closed = |error| matches!(error, RateLimitError::Limited(AcquireError::Closed));
    for service in services {
        assert!(is_closed(service.await.unwrap().unwrap_err()));
    }
    assert!(is_ready(&mut claiming).await);
    assert!(is_closed(claiming.call(1).await.unwrap_err()));
    let late = limiter.acquire("k", &Cost::new()).await.unwrap_err();
    assert!(matches!(late, AcquireError::Closed));
}

#[tokio::test(start_paused = true)]
async fn claim_without_call_delays_others_by_fifty_ms() {
    let limiter = used_up().await;
    let mut kept = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut kept).await);
    let begin = limiter.now();
    let other = tokio::spawn(limiter.acquire("k", &Cost::new()));
    // A service that is never polled again leaves no claim.
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(!is_ready(&mut kept).await);
    other.await.unwrap().unwrap().settle(&Cost::new());
    let waited = limiter.now() - begin;
    assert!(waited > S && waited <= S + Duration::from_millis(60), "{waited:?}");
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn claim_dropped_without_call_delays_no_other() {
    let limiter = used_up().await;
    let mut dropped = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut dropped).await);
    let begin = limiter.now();
    let later = tokio::spawn(limiter.acquire("k", &Cost::new()));
    dropped.ready().await.unwrap();
    drop(dropped);
    drop(later.await.unwrap().unwrap());
    assert!(limiter.now() - begin <= S + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn quota_set_again_beside_claim_has_no_usage_but_the_claim() {
    let limiter = used_up().await;
    let mut claiming = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut claiming).await);
    tokio::time::sleep(S).await;
    for (rpm, fits) in [(2, true), (1, false)] {
        limiter.quotas().remove("k");
        limiter
            .quotas()
            .set("k", &Quota::new().rpm(rpm).with_algorithm(Algorithm::TokenBucket))
            .unwrap();
        assert_eq!(limiter.acquire("k", &Cost::new()).try_now().is_ok(), fits, "{rpm}");
    }
    claiming.ready().await.unwrap().call(1).await.unwrap();
}
