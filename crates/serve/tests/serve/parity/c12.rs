//! c12: HTTP/1.1 and HTTP/2 without TLS, `X-Correlation-ID`, and responses to waiting requests at
//! shutdown.

use crate::rig::{HttpReply, Rig, http1, http2, until};

#[tokio::test]
async fn c12_shutdown_answers_waiters_over_http1_and_http2() {
    let mut rig = Rig::new("max_requests: 1").await;
    rig.post("/rate/k").await;
    let waiters = [http1(), http2()].map(|client| {
        let request = client.post(rig.url("/rate/k?canWait=true"));
        tokio::spawn(HttpReply::of(request.header("X-Correlation-ID", "mine")))
    });
    until(|| rig.waiting("k") == 2).await;
    rig.server.take().unwrap().shutdown().await.unwrap();
    for waiter in waiters {
        let reply = waiter.await.unwrap();
        assert_eq!((reply.status, reply.header("x-correlation-id")), (503, "mine"));
    }
}
