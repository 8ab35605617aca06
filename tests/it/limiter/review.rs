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

