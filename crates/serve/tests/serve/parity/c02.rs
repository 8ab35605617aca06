//! c02: parameters of a request.

use crate::rig::Rig;

#[tokio::test]
async fn c02_disabled_parameters_are_refused() {
    let rig = Rig::new("max_requests: 1, max_requests_in_queue: 0").await;
    assert_eq!(rig.post("/rate/k?maxRequests=5").await.status, 403);
    assert_eq!(rig.post("/rate/k?maxRequestsInQueue=5").await.status, 403);
    assert_eq!(rig.count_granted(2, "/rate/k?canWait=true").await, 1);
}

#[tokio::test]
async fn c02_allowed_parameters_affect_only_one_request() {
    let rig = Rig::new("max_requests: 1, requests_can_set_rate: true").await;
    assert_eq!(rig.count_granted(5, "/rate/k?maxRequests=3").await, 3);
    assert_eq!(rig.post("/rate/k").await.status, 429);
    assert_eq!(rig.get("/debug/k").await.json()["Config"]["MaxRequestsPerWindow"], 1);
    for out in ["0", "-5", "1000000001"] {
        assert_eq!(rig.post(&format!("/rate/k?maxRequests={out}")).await.status, 400);
    }
}

#[tokio::test]
async fn c02_tokens_and_timeout_are_extensions() {
    let text = "quotas: {m: {tpm: 100}}\nserve: {listen: '127.0.0.1:0'}";
    let rig = Rig::start(text, Default::default()).await;
    assert_eq!(rig.post("/rate/m?tokens=60").await.status, 200);
    assert_eq!(rig.post("/rate/m?tokens=60").await.status, 429);
    assert_eq!(rig.post("/rate/m?tokens=60&canWait=true&timeout=5s").await.status, 429);
    assert_eq!(rig.post("/rate/m?tokens=40").await.status, 200);
    let waiter = rig.spawn_waiter("m", "/rate/m?tokens=100&canWait=true&timeout=2m").await;
    rig.advance_millis(60_500);
    assert_eq!(waiter.await.unwrap().status, 200);
}
