//! A service that is pending and then kept without being polled.

use std::time::Duration;

use tollgate::limiter::Limiter;
use tollgate::quota::Quota;
use tower::load_shed::LoadShed;
use tower::{Layer, ServiceExt};

use super::{gated, seconds_since, send};
use crate::middleware::{available, echo, held, is_ready, limiter};

/// Waits for the quota of a minute that is used up, behind others; a second late is in time. In a
/// task of its own: the wakers of those that are kept must not wake it.
async fn gets_through_in_time(limiter: &Limiter) {
    let begin = limiter.now();
    let sent = tokio::spawn(gated(limiter).layer(echo()).oneshot(1));
    let sent = tokio::time::timeout(Duration::from_secs(600), sent).await;
    sent.expect("is let in").unwrap().unwrap();
    assert!((60..=61).contains(&seconds_since(limiter, begin)));
    assert_eq!((available(limiter, "k"), held(limiter, "k")), (vec![0], vec![0]));
}

#[tokio::test(start_paused = true)]
async fn a_pending_service_that_is_kept_without_being_polled_strands_nobody() {
    let limiter = limiter(Quota::new().rpm(1));
    gated(&limiter).layer(echo()).oneshot(1).await.unwrap();
    let mut kept = gated(&limiter).layer(echo());
    assert!(!is_ready(&mut kept).await);
    gets_through_in_time(&limiter).await;
    // Nor does it the next time.
    gets_through_in_time(&limiter).await;
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn load_shed_that_has_shed_and_is_not_asked_again_strands_nobody() {
    let limiter = limiter(Quota::new().rpm(1));
    let mut shedding = LoadShed::new(gated(&limiter).layer(echo()));
    send(&mut shedding).await.unwrap();
    send(&mut shedding).await.unwrap_err();
    gets_through_in_time(&limiter).await;
}
