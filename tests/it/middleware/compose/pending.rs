//! Services that were pending and are then kept without being polled.

use std::time::Duration;

use paceline::limiter::Limiter;
use paceline::quota::Quota;
use tower::load_shed::LoadShed;
use tower::{Layer, ServiceExt};

use super::{gated, seconds_since, send};
use crate::middleware::{available, echo, held, is_ready, limiter};

/// Asserts that a request is admitted after a minute whose quota is used up, at most one second late.
/// It runs in a separate task, so that the wakers of kept services don't wake it.
async fn assert_admitted_in_time(limiter: &Limiter) {
    let begin = limiter.now();
    let sent = tokio::spawn(gated(limiter).layer(echo()).oneshot(1));
    let sent = tokio::time::timeout(Duration::from_secs(600), sent).await;
    sent.expect("the request is admitted").unwrap().unwrap();
    assert!((60..=61).contains(&seconds_since(limiter, begin)));
    assert_eq!((available(limiter, "k"), held(limiter, "k")), (vec![0], vec![0]));
}

#[tokio::test(start_paused = true)]
async fn pending_service_not_polled_again_does_not_block_others() {
    let limiter = limiter(Quota::new().rpm(1));
    gated(&limiter).layer(echo()).oneshot(1).await.unwrap();
    let mut kept = gated(&limiter).layer(echo());
    assert!(!is_ready(&mut kept).await);
    assert_admitted_in_time(&limiter).await;
    // The same holds a second time.
    assert_admitted_in_time(&limiter).await;
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn load_shed_not_polled_again_does_not_block_others() {
    let limiter = limiter(Quota::new().rpm(1));
    let mut shedding = LoadShed::new(gated(&limiter).layer(echo()));
    send(&mut shedding).await.unwrap();
    send(&mut shedding).await.unwrap_err();
    assert_admitted_in_time(&limiter).await;
}
