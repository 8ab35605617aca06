use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Rig;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_reservations_and_releases_respect_limits() {
    let rig = Rig::start("quotas: {a: {rpm: 400, concurrency: 1000}, b: {rpm: 300}}").await;
    let rig = Arc::new(rig);
    let client = |n: u32| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            let keys = if n.is_multiple_of(2) { json!(["a", "b"]) } else { json!(["b", "a"]) };
            let response = rig.reserve(json!({"keys": keys})).await;
            if response.status == 201 {
                let id = response.body["id"].as_str().unwrap().to_owned();
                // Two concurrent requests end the same reservation; one of them succeeds.
                let (settle, release) = tokio::join!(rig.settle(&id, json!({})), rig.release(&id));
                let both = [settle.status, release.status];
                assert!(both == [200, 409] || both == [409, 200], "{both:?}");
                return (1, u64::from(settle.status == 200));
            }
            response.assert_problem(429, "rpm_exceeded");
            (0, 0)
        })
    };
    let ended = stream::iter(0..1000).map(client).buffer_unordered(CLIENTS);
    let ended: Vec<(u64, u64)> = ended.map(Result::unwrap).collect().await;
    let granted: u64 = ended.iter().map(|(granted, _)| granted).sum();
    let settled: u64 = ended.iter().map(|(_, settled)| settled).sum();
    // Released reservations can be granted again.
    assert!(granted >= 300, "{granted}");
    assert_eq!((rig.used("b"), rig.used("a")), (settled, settled));
    assert!(settled <= 300, "{settled}");
    assert_eq!((rig.held("a"), rig.held("b")), (0, 0));
}

#[tokio::test]
async fn concurrent_reservations_are_granted_up_to_the_limit() {
    let rig = Rig::start("quotas: {a: {rpm: 400}, b: {rpm: 300}}").await;
    let both = json!({"keys": ["a", "b"]});
    let responses = stream::iter(0..1000).map(|_| rig.reserve(both.clone()));
    let responses: Vec<_> = responses.buffer_unordered(CLIENTS).collect().await;
    assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 300);
    assert_eq!((rig.used("a"), rig.used("b")), (300, 300));
}

#[tokio::test]
async fn disconnected_client_leaves_the_queue() {
    let rig = Rig::start("quotas: {a: {rpm: 1}}").await;
    rig.open_reservation("a").await;
    for key in ["", "idempotency-key: k\r\n"] {
        let body = json!({"keys": ["a"], "wait_ms": 600_000}).to_string();
        let mut client = TcpStream::connect(rig.server.addr()).await.unwrap();
        let head = format!(
            "POST /v1/reserve HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             {key}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(head.as_bytes()).await.unwrap();
        rig.wait_until_waiting("a", 1).await;
        drop(client);
        rig.wait_until_waiting("a", 0).await;
    }
    // No quota is held, and the idempotency key is free.
    rig.advance(60);
    assert_eq!(rig.used("a"), 0);
    rig.post_with_key("k", "/v1/reserve", json!({"keys": ["a"]})).await.assert_status(201);
}

/// The number of concurrent clients. More connections than the listener's backlog of 1,024 could be reset
/// on a busy machine.
const CLIENTS: usize = 250;
