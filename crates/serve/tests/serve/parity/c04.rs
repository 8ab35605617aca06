//! c04: a queue in order of arrival.

use crate::rig::Rig;

#[tokio::test]
async fn c04_waiting_requests_are_granted_in_order() {
    let rig = Rig::new("max_requests: 1").await;
    rig.post("/rate/k").await;
    let mut waiters = Vec::new();
    for _ in 0..4 {
        waiters.push(rig.spawn_waiter("k", "/rate/k?canWait=true").await);
    }
    // The second client disconnects; the others move up.
    waiters.remove(1).abort();
    crate::rig::until(|| rig.waiting("k") == 3).await;
    while !waiters.is_empty() {
        rig.advance_millis(1000);
        assert_eq!(waiters.remove(0).await.unwrap().status, 200);
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        assert_eq!(rig.post("/rate/k").await.status, 429);
    }
}
