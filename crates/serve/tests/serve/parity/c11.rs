//! c11: waiting requests are released in order at the pace of the window, never twice the limit at its
//! edge.

use crate::rig::{Rig, until};

#[tokio::test]
async fn c11_waiters_are_released_window_by_window() {
    let rig = Rig::new("max_requests: 2, window_millis: 1000").await;
    rig.advance_millis(990);
    assert_eq!(rig.count_granted(2, "/rate/k").await, 2);
    let first = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    let second = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    let third = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    rig.advance_millis(10);
    rig.get("/healthz").await;
    assert_eq!(rig.waiting("k"), 3, "windows are not aligned to the clock");
    rig.advance_millis(990);
    until(|| rig.waiting("k") == 1).await;
    assert_eq!([first.await.unwrap().status, second.await.unwrap().status], [200, 200]);
    assert!(!third.is_finished());
}
