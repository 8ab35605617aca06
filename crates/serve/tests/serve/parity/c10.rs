//! c10: a key that is idle for three windows is dropped.

use crate::rig::{Rig, until};

#[tokio::test]
async fn c10_idle_key_is_dropped() {
    let rig = Rig::new("window_millis: 100").await;
    rig.post("/rate/k").await;
    rig.advance_millis(299);
    assert_eq!(rig.get("/debug/k").await.status, 200);
    rig.advance_millis(1);
    assert_eq!(rig.get("/debug/k").await.status, 404);
    rig.advance_millis(59_699);
    rig.get("/healthz").await;
    assert_eq!(rig.limiter.state().keys(), ["rate/k"]);
    // Without further requests the server drops the key.
    rig.advance_millis(1);
    until(|| rig.limiter.state().keys().is_empty()).await;
}
