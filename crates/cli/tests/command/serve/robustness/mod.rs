//! Misbehaving clients don't affect others.

mod bounds;
mod flood;
mod frames;
mod malformed;
mod slow;

use std::net::SocketAddr;
use std::time::Duration;

use super::process::Served;
use paceline_testing::wire::{Wire, WireResponse, exchange, header};

/// Asserts that the server runs and serves a new client.
async fn serves_others(server: &mut Served) {
    assert!(server.is_running());
    let answer = in_time(ask(server.addr(), "GET", "/healthz")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = in_time(ask(server.addr(), "POST", "/rate/others")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Sends one request on a new connection.
async fn ask(addr: SocketAddr, method: &str, path: &str) -> WireResponse {
    let mut wire = Wire::connect(addr).await.expect("a connection");
    wire.request(method, path).await.expect("a response")
}

/// Fails if the future does not complete within a minute.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("the future completes in time")
}

/// Returns the status of every response.
fn statuses(received: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(received);
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head[..3].parse().expect("a status")).collect()
}
