use std::time::Duration;

use super::{Served, Wire, in_time, serves_others};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_time_out_and_others_are_served() {
    let mut server = Served::start("serve: {bounds: {head_timeout: 1s}}");
    let slow_clients: Vec<_> =
        (0..500).map(|_| tokio::spawn(send_slow_head(server.addr()))).collect();
    serves_others(&mut server).await;
    for client in slow_clients {
        in_time(client).await.expect("the connection was closed");
    }
    serves_others(&mut server).await;
}

/// Sends a head byte by byte until the server closes the connection.
async fn send_slow_head(addr: std::net::SocketAddr) {
    let mut wire = Wire::connect(addr).await.expect("a connection");
    wire.send(b"POST /rate/a HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        .await
        .expect("the request is sent");
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            received = wire.read_until_closed() => return assert_timeout_response(&received),
            _ = ticks.tick() => {}
        }
        if wire.send(b"a").await.is_err() {
            return;
        }
    }
}

fn assert_timeout_response(received: &[u8]) {
    let received = String::from_utf8_lossy(received);
    assert!(received.is_empty() || received.starts_with("HTTP/1.1 408"), "{received}");
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let mut server = Served::start("serve: {bounds: {head_timeout: 200ms}}");
    let mut silent = Wire::connect(server.addr()).await.expect("a connection");
    assert_timeout_response(&in_time(silent.read_until_closed()).await);
    serves_others(&mut server).await;
}

#[tokio::test]
async fn missing_body_times_out() {
    let mut server = Served::start("serve: {bounds: {head_timeout: 1s, body_timeout: 200ms}}");
    for path in ["/rate/a", "/v1/reserve"] {
        let mut wire = Wire::connect(server.addr()).await.expect("a connection");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{"
        );
        wire.send(head.as_bytes()).await.expect("the request is sent");
        let received = in_time(wire.read_until_closed()).await;
        assert!(
            !received.starts_with(b"HTTP/1.1 5"),
            "{path}: {:?}",
            String::from_utf8_lossy(&received)
        );
    }
    serves_others(&mut server).await;
}
