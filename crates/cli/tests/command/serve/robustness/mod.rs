//! What goes wrong with some clients is nothing that the others notice.

mod bounds;
mod flood;
mod frames;
mod malformed;
mod slow;

use std::net::SocketAddr;
use std::time::Duration;

use super::process::Served;
use tollgate_testing::wire::{Answer, Wire, exchange, header};

/// The server still runs, and answers somebody new.
async fn serves_others(server: &mut Served) {
    assert!(server.is_running());
    let answer = in_time(ask(server.addr(), "GET", "/healthz")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = in_time(ask(server.addr(), "POST", "/rate/others")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// One request on a connection of its own.
async fn ask(addr: SocketAddr, method: &str, path: &str) -> Answer {
    let mut wire = Wire::connect(addr).await.expect("a connection");
    wire.ask(method, path).await.expect("an answer")
}

/// Long enough for whatever ends at all.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it ends")
}

/// The status of every answer in what a server said; nothing else may be in there.
fn statuses(said: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(said);
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head[..3].parse().expect("a status")).collect()
}
