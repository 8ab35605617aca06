//! c03: `DELETE /rate/{key}/{id}`.

use crate::rig::Rig;

#[tokio::test]
async fn c03_grant_is_returned_by_owner() {
    let rig = Rig::new("max_requests: 1").await;
    let id = rig.post("/rate/k").await.body;
    let waiter = rig.spawn_waiter("k", "/rate/k?canWait=true").await;
    for bogus in ["1", "x", "1-1-1-1-1"] {
        assert_eq!(rig.delete(&format!("/rate/k/{bogus}")).await.status, 404);
    }
    assert!(!waiter.is_finished());
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 200);
    assert_eq!(waiter.await.unwrap().status, 200);
    assert_eq!(rig.delete(&format!("/rate/k/{id}")).await.status, 404);
    assert_eq!(rig.post("/rate/k").await.status, 429);
}
