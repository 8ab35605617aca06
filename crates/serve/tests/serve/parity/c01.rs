//! c01: `POST` or `GET /rate/{key}`.

use reqwest::Method;

use crate::rig::Rig;

#[tokio::test]
async fn c01_grant_is_requested_by_post_or_get() {
    let rig = Rig::new("max_requests: 2").await;
    let mut ids = Vec::new();
    for method in [Method::POST, Method::GET] {
        let reply = rig.send(method, "/rate/k").await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, "text/plain; charset=UTF-8")
        );
        ids.push(reply.body);
    }
    assert_ne!(ids[0], ids[1]);
    let denied = rig.get("/rate/k").await;
    assert_eq!((denied.status, denied.body.as_str(), denied.header("retry-after")), (429, "", "1"));
    assert!(
        !denied.header("ratelimit").is_empty() && !denied.header("ratelimit-policy").is_empty()
    );
    assert_eq!(rig.post("/rate/k?canWait=2").await.status, 400);
    assert_eq!(rig.post("/rate/k?maxRequests=2").await.status, 403);
}
