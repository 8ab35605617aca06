use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::engine::Wait;
use tollgate::limiter::{
    Backend, Ending, Limiter, ManualClock, RateLimited, Reservation, Reserving, TokioClock,
    UnknownKey,
};
use tollgate::quota::{Algorithm, Cost, Dimension, Limit, Quota, Usage, Window};

use super::{builder, manual, paused, settle_down, tokens};

#[tokio::test(start_paused = true)]
async fn capacity_that_is_there_at_the_deadline_is_told_even_behind_another_gate() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(30)).await.unwrap().settle(&tokens(30));
    let mut first = std::pin::pin!(limiter.wait_for_capacity("k", &tokens(60)));
    assert!(futures_util::poll!(&mut first).is_pending());
    limiter.acquire("k", &tokens(30)).await.unwrap().settle(&tokens(30));
    let second = limiter.wait_for_capacity("k", &tokens(5)).max_wait(Duration::from_secs(7));
    second.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn capacity_is_waited_for_in_a_dimension_of_ones_own() {
    let dimension = Dimension::custom("images");
    let quota = Quota::new().limit(Limit::new(dimension, 2, Window::MINUTE).unwrap());
    let limiter = paused(quota);
    let images = Cost::new().custom("images", 2);
    limiter.acquire("k", &images).await.unwrap().settle(&images);
    let mut waiting = std::pin::pin!(limiter.wait_for_capacity("k", &images));
    assert!(futures_util::poll!(&mut waiting).is_pending());
}

#[test]
fn a_quota_that_is_set_takes_the_place_of_limits_that_came_with_a_call() {
    let (limiter, _) = manual(Quota::new().rpm(9));
    let limits = Quota::new().rpm(1);
    limiter.acquire_limits("k", &Cost::new(), &limits).unwrap().try_now().unwrap();
    limiter.set_quota("k", &Quota::new().rpm(7));
    assert_eq!(limiter.quota("k"), Quota::new().rpm(7));
    limiter.acquire_limits("k", &Cost::new(), &limits).unwrap().try_now().unwrap_err();
    limiter.remove_quota("k");
    assert_eq!(limiter.quota("k"), Quota::new());
}

#[test]
fn a_reset_of_a_key_that_shares_its_quota_resets_what_is_shared() {
    let limiter = builder().quota("g*", Quota::new().rpm(1).shared()).build().unwrap();
    limiter.try_acquire("g1", &Cost::new()).unwrap();
    limiter.on_rate_limited("g1", &RateLimited::new(Some(Duration::from_secs(9))));
    limiter.reset("g1");
    limiter.try_acquire("g1", &Cost::new()).unwrap();
}

