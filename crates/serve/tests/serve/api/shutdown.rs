use paceline::limiter::Limiter;
use paceline_serve::{Server, Tokens};
use paceline_testing::http::reserve;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Rig;

#[tokio::test]
async fn shutdown_refuses_waiters_and_charges_open_reservations() {
    let rig = Rig::start("quotas: {a: {tpm: 100, concurrency: 1}}").await;
    rig.reserve(json!({"keys": ["a"], "cost": {"tokens": 30}})).await.assert_status(201);
    assert_eq!(rig.held("a"), 31);
    let waits = rig.request("POST", "/v1/reserve").header("content-type", "application/json");
    let waits = waits.body(json!({"keys": ["a"], "wait_ms": 600_000}).to_string());
    let waits = tokio::spawn(super::send(waits));
    rig.wait_until_waiting("a", 1).await;
    let Rig { server, limiter, .. } = rig;
    server.shutdown().await.unwrap();
    let response = waits.await.unwrap();
    response.assert_problem(503, "closed");
    assert_eq!(response.header("retry-after"), "1");
    let limits = limiter.stats("a").limits;
    assert!(limits.iter().all(|limit| limit.held == 0), "{limits:?}");
    assert_eq!(limits[0].used, 30);
}

#[tokio::test]
async fn settlement_during_shutdown_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&format!("{{sqlite: '{}'}}", directory.path().join("state.db").display()));
    let (server, limiter) = start(&config).await;
    let base = format!("http://{}", server.addr());
    let (settled, _open) = (reserve(&base).await, reserve(&base).await);
    let body = json!({"cost": {"tokens": 7}}).to_string();
    let head = format!(
        "POST /v1/reservations/{settled}/settle HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\
         content-type: application/json\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    let mut client = TcpStream::connect(server.addr()).await.unwrap();
    client.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    client.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");

    let addr = server.addr();
    let stopped = tokio::spawn(server.shutdown());
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    client.write_all(body.as_bytes()).await.unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    stopped.await.unwrap().unwrap();
    // The other reservation is charged as reserved.
    let used = |limiter: &Limiter| limiter.stats("a").limits[0].used;
    assert_eq!(used(&limiter), 37);
    let (server, again) = start(&config).await;
    assert_eq!(used(&again), 37);
    server.shutdown().await.unwrap();
}

/// Starts a server with a store and the system clock.
async fn start(config: &str) -> (Server, Limiter) {
    let config = paceline_serve::parse(config).unwrap();
    let limiter = paceline_serve::limiter(&config).unwrap();
    (Server::bind(config, limiter.clone(), Tokens::default()).await.unwrap(), limiter)
}

fn config(store: &str) -> String {
    format!(
        "{{serve: {{listen: '127.0.0.1:0'}}, store: {store}, quotas: {{a: {{tpd: 1000}}}}, \
          margin: {{percent: 0, lag: 0s}}}}"
    )
}
