//! Closing while requests wait.

use paceline::limiter::{AcquireError, Code, TokioClock};
use paceline::quota::{Cost, Quota};

use super::rig::{builder, held, settle_down, used, waiter};

#[tokio::test(start_paused = true)]
async fn s12_close_rejects_waiters_immediately() {
    let keys = ["a", "b", "c"];
    let limiter = builder().quota("*", Quota::new().rpm(1)).clock(TokioClock::new());
    let limiter = limiter.build().unwrap();
    let begin = limiter.now();
    for key in keys {
        drop(limiter.acquire(key, &Cost::new()).await.unwrap());
    }
    let mut waiters: Vec<_> =
        (0..90).map(|i| waiter(&limiter, keys[i % keys.len()], &Cost::new())).collect();
    waiters.push(tokio::spawn(limiter.acquire_all(&keys, &Cost::new())));
    let capacity = tokio::spawn(limiter.wait_for_capacity("a", &Cost::new()));
    settle_down().await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    limiter.close().await;
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().unwrap_err(), AcquireError::Closed);
    }
    assert_eq!(capacity.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(limiter.now(), begin);
    assert!(keys.iter().all(|key| limiter.stats(key).waiting == 0));
}

#[tokio::test(start_paused = true)]
async fn s12_close_rejects_newcomers_and_permits_end_normally() {
    let quota = Quota::new().rpm(9).tpm(100).concurrency(1);
    let limiter = builder().quota("k", quota).clock(TokioClock::new()).build().unwrap();
    let cost = Cost::new().tokens(40);
    let permit = limiter.acquire("k", &cost).await.unwrap();
    limiter.close().await;
    limiter.close().await;
    assert_eq!(limiter.acquire("k", &cost).await.unwrap_err(), AcquireError::Closed);
    assert_eq!(limiter.try_acquire("k", &cost).unwrap_err().code, Code::Closed);
    assert_eq!(limiter.decide("k", &cost).code.as_str(), "closed");
    permit.settle(&Cost::new().tokens(30));
    assert_eq!((used(&limiter, "k"), held(&limiter, "k")), (vec![1, 30, 0], vec![0, 0, 0]));
}
