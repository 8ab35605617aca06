//! A log that is not read, which must not stop the server.

use std::io::Read;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::process::Served;
use crate::cli::rig::TestHome;

/// A server that logs all responses, to a pipe that is not read.
fn served() -> Served {
    let home = TestHome::new();
    Served::spawn(&mut home.paceline("serve -p 0 --log2xx"))
}

/// Sends `count` requests for `/healthz` on one connection, and returns the number of responses.
async fn check_health(served: &Served, count: usize) -> usize {
    let (mut reader, mut writer) =
        TcpStream::connect(served.addr()).await.expect("a connection").into_split();
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let last = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let requests = request.repeat(count - 1) + last;
    // The connection stays open for writing until all responses are read.
    let writing =
        tokio::spawn(async move { writer.write_all(requests.as_bytes()).await.map(|()| writer) });
    let mut responses = String::new();
    let read = timeout(Duration::from_secs(60), reader.read_to_string(&mut responses)).await;
    read.expect("all responses arrive in time").expect("complete responses");
    writing.await.expect("no panic").expect("complete requests");
    responses.matches("HTTP/1.1 200 OK").count()
}

#[tokio::test]
async fn unread_log_stops_no_response_and_lost_lines_are_counted() {
    let mut served = served();
    assert_eq!(check_health(&served, 12_000).await, 12_000);

    let mut stderr = served.process().guard().get_mut().stderr.take().expect("a pipe");
    let reading = std::thread::spawn(move || {
        let mut log = String::new();
        stderr.read_to_string(&mut log).map(|_| log)
    });
    tokio::task::spawn_blocking(|| served.terminate()).await.expect("no panic");
    let log = reading.join().expect("no panic").expect("a text");
    let lines =
        log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line));
    let (mut written, mut lost) = (0, 0);
    for line in lines {
        match line["message"].as_str() {
            Some("request finished") => written += 1,
            _ => lost += line["lines"].as_u64().unwrap_or_else(|| panic!("{line}")),
        }
    }
    assert!(lost > 0, "{written} lines were written");
    assert_eq!(written + lost, 12_000);
}

#[tokio::test]
async fn sigterm_ends_server_whose_log_is_not_read() {
    let mut served = served();
    assert_eq!(check_health(&served, 1_000).await, 1_000);
    served.process().guard().signal("-TERM");
    let ended = tokio::task::spawn_blocking(move || {
        let status = served.process().guard().get_mut().wait();
        status.expect("the status is readable").code()
    });
    let code = timeout(Duration::from_secs(60), ended).await.expect("the server ends in time");
    assert_eq!(code.expect("no panic"), Some(0));
}
