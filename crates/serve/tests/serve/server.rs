//! Connections: protocols, bounds and shutdown.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use paceline::limiter::DefaultLimits;
use paceline::quota::{Cost, Quota};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::rig::{HttpReply, Rig, http1, http2, raw, until};
use paceline_testing::wire::{Wire, header};

#[tokio::test]
async fn one_port_serves_http1_and_http2() {
    let rig = Rig::new("max_requests: 9").await;
    for (client, version) in
        [(http1(), reqwest::Version::HTTP_11), (http2(), reqwest::Version::HTTP_2)]
    {
        let response = client.post(rig.url("/rate/k")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
    }
}

#[tokio::test]
async fn responses_have_request_and_correlation_ids() {
    let rig = Rig::new("max_requests: 1").await;
    let first = rig.post("/rate/k").await;
    let second = rig.get("/nothing/here").await;
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
    assert!(!first.header("x-request-id").is_empty() && second.status == 404);
    let request = http1().post(rig.url("/rate/k"));
    let reply =
        HttpReply::of(request.header("x-request-id", "r-1").header("X-Correlation-ID", "c-1"));
    let reply = reply.await;
    assert_eq!(reply.status, 429);
    assert_eq!((reply.header("x-request-id"), reply.header("x-correlation-id")), ("r-1", "c-1"));
    assert_eq!(first.header("x-content-type-options"), "nosniff");
    assert_eq!(first.header("cache-control"), "no-store");
}

#[tokio::test]
async fn shutdown_answers_waiting_requests() {
    let mut rig = Rig::new("max_requests: 1, max_requests_in_queue: 50").await;
    rig.post("/rate/k").await;
    let mut waiters = Vec::new();
    for _ in 0..20 {
        waiters.push(rig.spawn_waiter("k", "/rate/k?canWait=true").await);
    }
    let idle = TcpStream::connect(rig.addr).await.unwrap();
    rig.server.take().unwrap().shutdown().await.unwrap();
    for waiter in waiters {
        let reply = waiter.await.unwrap();
        assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    }
    drop(idle);
    assert!(TcpStream::connect(rig.addr).await.is_err(), "the port is closed");
}

#[tokio::test(start_paused = true)]
async fn connections_are_cut_off_at_the_end_of_the_drain() {
    let mut rig = Rig::new("drain: 2s, bounds: {head_timeout: 1h, body_timeout: 1h}").await;
    let mut stream = TcpStream::connect(rig.addr).await.unwrap();
    stream.write_all(b"POST /rate/k HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    rig.server.take().unwrap().shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn slow_request_head_is_cut_off() {
    let rig = Rig::new("bounds: {head_timeout: 50ms}").await;
    for begun in ["", "P", "PRI * HTTP/2.0\r\n", "POST /rate/k HTTP/1.1\r\nhost"] {
        let response = raw(rig.addr, begun.as_bytes()).await;
        assert!(!response.contains("200 OK"), "{response}");
    }
    assert_eq!(rig.post("/rate/k").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_receives_the_whole_response() {
    let rig = Rig::new("max_requests: 1, bounds: {head_timeout: 1s, body_timeout: 1h}").await;
    let limits = DefaultLimits::new(&rig.limiter, &Quota::new().rpm(1));
    for number in 0..20_000 {
        let key = format!("rate/a-key-of-some-length-{number}");
        let acquire = rig.limiter.acquire(&key, &Cost::new()).default_limits(&limits);
        drop(acquire.try_now().unwrap());
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(rig.addr).await.unwrap();
    stream.write_all(b"GET /debug HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let (mut response, mut buffer) = (Vec::new(), vec![0; 200_000]);
    while !response.ends_with(b"}}}") {
        // Longer than the idle timeout.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "cut off after {} bytes", response.len());
        response.extend_from_slice(&buffer[..read]);
    }
}

#[tokio::test]
async fn ignored_request_body_is_drained_for_keep_alive() {
    let rig = Rig::new("max_requests: 9").await;
    let mut wire = Wire::connect(rig.addr).await.unwrap();
    let head = "POST /rate/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n";
    wire.send(format!("{head}expect: 100-continue\r\n\r\n").as_bytes()).await.unwrap();
    let interim = wire.read_response().await.unwrap();
    assert_eq!(interim.status, 100);
    wire.send(b"{}").await.unwrap();
    let response = wire.read_response().await.unwrap();
    assert_eq!((response.status, header(&response.head, "connection")), (200, None));
    assert_eq!(wire.request("POST", "/rate/k").await.unwrap().status, 200);
}

#[tokio::test]
async fn connections_are_bounded() {
    let rig = Rig::new("bounds: {connections: 2, head_timeout: 1h}").await;
    let mut first = TcpStream::connect(rig.addr).await.unwrap();
    let second = TcpStream::connect(rig.addr).await.unwrap();
    first.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let third = tokio::spawn(HttpReply::of(http1().get(rig.url("/healthz"))));
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!third.is_finished());
    drop(second);
    assert_eq!(third.await.unwrap().status, 200);
}

#[tokio::test]
async fn oversized_head_is_refused() {
    let rig = Rig::new("bounds: {head: 8192}").await;
    let head =
        format!("GET /rate/k HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "x".repeat(20_000));
    let response = raw(rig.addr, head.as_bytes()).await;
    assert!(response.is_empty() || response.starts_with("HTTP/1.1 431"), "{response}");
    assert_eq!(rig.post("/rate/k").await.status, 200);
}

#[tokio::test]
async fn malformed_request_ends_only_one_connection() {
    let rig = Rig::new("max_requests: 9").await;
    for malformed in [
        "\0\u{1}\u{2}\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "POST /rate/k HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    ] {
        let response = raw(rig.addr, malformed.as_bytes()).await;
        assert!(response.is_empty() || response.starts_with("HTTP/1.1 4"), "{response}");
    }
    assert_eq!(rig.post("/rate/k").await.status, 200);
}

#[tokio::test]
async fn waiting_requests_are_bounded_server_wide() {
    let rig = Rig::new("max_requests: 1, bounds: {waiting: 1}").await;
    assert_eq!(rig.count_granted(1, "/rate/a").await + rig.count_granted(1, "/rate/b").await, 2);
    let waiter = rig.spawn_waiter("a", "/rate/a?canWait=true").await;
    let busy = rig.post("/rate/b?canWait=true").await;
    assert_eq!((busy.status, busy.header("retry-after"), rig.waiting("b")), (503, "1", 0));
    rig.advance_millis(1000);
    assert_eq!(waiter.await.unwrap().status, 200);
    tokio::time::timeout(Duration::from_secs(5), until(|| rig.waiting("a") == 0)).await.unwrap();
}

#[tokio::test]
async fn client_not_reading_is_disconnected() {
    let rig = Rig::new("bounds: {connections: 1, head_timeout: 1h, body_timeout: 50ms}").await;
    let mut client = TcpStream::connect(rig.addr).await.unwrap();
    let flood = tokio::spawn(async move {
        let request = b"GET /rate/k HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
        while client.write_all(&request).await.is_ok() {}
    });
    flood.await.unwrap();
    assert_eq!(rig.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn slow_ignored_body_does_not_delay_the_response() {
    let rig = Rig::new("bounds: {body_timeout: 50ms, head_timeout: 1h}").await;
    let begun =
        b"POST /rate/k HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 10\r\n\r\nab";
    let response = raw(rig.addr, begun).await;
    assert!(response.starts_with("HTTP/1.1 200"), "the body is not needed: {response}");
}

#[tokio::test]
async fn shutdown_drops_the_limiter() {
    let mut rig = Rig::new("max_requests: 9").await;
    // Listeners are dropped with the limiter's shared state.
    let owned = Arc::new(());
    let left = Arc::downgrade(&owned);
    rig.limiter.listen(move |_| {
        black_box(&owned);
    });
    for path in ["/", "/rate/k", "/metrics", "/v1/stats", "/debug"] {
        assert_eq!(rig.get(path).await.status, 200, "{path}");
    }
    rig.server.take().unwrap().shutdown().await.unwrap();
    drop(rig);
    until(|| left.strong_count() == 0).await;
}
