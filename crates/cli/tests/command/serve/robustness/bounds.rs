use super::{Served, Wire, WireResponse, ask, exchange, header, in_time, serves_others, statuses};

#[tokio::test]
async fn heads_and_keys_above_bounds_are_rejected() {
    let mut server = Served::start("serve: {bounds: {head: 8192, key: 64}}");
    let long = |length: usize| "a".repeat(length);
    let key = |length| format!("POST /rate/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", long(length));
    let header =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: {}\r\n\r\n", long(20_000));
    let headers =
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(1_000));
    for (what, request, expected) in [
        ("a key", key(65), vec![400, 414]),
        ("a path", key(20_000), vec![400, 414, 431]),
        ("a header", header, vec![431]),
        ("headers", headers, vec![431]),
    ] {
        let received = in_time(exchange(server.addr(), request.as_bytes())).await;
        let statuses = statuses(&received);
        assert!(
            statuses.len() == 1 && expected.contains(&statuses[0]),
            "{what}: {:?}",
            String::from_utf8_lossy(&received)
        );
    }
    let received = exchange(server.addr(), key(64).as_bytes()).await;
    assert_eq!(statuses(&received), [200]);
    serves_others(&mut server).await;
}

#[tokio::test]
async fn connections_above_bound_wait_for_free_slot() {
    let mut server = Served::start("serve: {bounds: {connections: 8}}");
    let mut first = Vec::new();
    for _ in 0..8 {
        let mut wire = Wire::connect(server.addr()).await.expect("a connection");
        assert_eq!(wire.request("GET", "/healthz").await.expect("a response").status, 200);
        first.push(wire);
    }
    let mut more = Vec::new();
    for _ in 0..20 {
        let mut wire = Wire::connect(server.addr()).await.expect("a connection");
        wire.send_head("GET", "/healthz").await.expect("the request is sent");
        more.push(wire);
    }
    // Accepted connections are served while others wait.
    for _ in 0..50 {
        for wire in &mut first {
            assert_eq!(
                in_time(wire.request("GET", "/healthz")).await.expect("a response").status,
                200
            );
        }
    }
    let mut next = more.swap_remove(0);
    tokio::select! {
        biased;
        answer = next.read_response() => panic!("the ninth connection is served: {answer:?}"),
        () = std::future::ready(()) => {}
    }
    drop(first);
    assert_eq!(in_time(next.read_response()).await.expect("a response").status, 200);
    drop((next, more));
    in_time(async {
        while !healthy(server.addr()).await {
            tokio::task::yield_now().await;
        }
    })
    .await;
    serves_others(&mut server).await;
}

/// Returns true if a new client is served; an early one may be rejected.
async fn healthy(addr: std::net::SocketAddr) -> bool {
    let Ok(mut wire) = Wire::connect(addr).await else { return false };
    wire.request("GET", "/healthz").await.is_ok_and(|answer| answer.status == 200)
}

#[tokio::test]
async fn waiters_above_bound_are_refused_and_others_kept() {
    let mut server = Served::start(
        "serve: {max_requests: 1, window_millis: 3600000, bounds: {waiting: 5}}\nwaiting: {max_wait: unlimited}",
    );
    assert_eq!(ask(server.addr(), "POST", "/rate/a").await.status, 200);
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let mut wire = Wire::connect(server.addr()).await.expect("a connection");
        wire.send_head("POST", "/rate/a?canWait=true").await.expect("the request is sent");
        waiting.push(wire);
    }
    let in_queue = async || {
        let answer = ask(server.addr(), "GET", "/debug/a").await;
        let debug: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
        debug["NumWaiting"].as_u64()
    };
    in_time(async { while in_queue().await != Some(5) {} }).await;
    // The bound applies to all keys together.
    assert_eq!(ask(server.addr(), "POST", "/rate/b").await.status, 200);
    for path in ["/rate/a?canWait=true", "/rate/b?canWait=true"] {
        let refused = in_time(ask(server.addr(), "POST", path)).await;
        assert!(matches!(refused.status, 429 | 503), "{path}: {refused:?}");
    }
    assert_eq!(in_queue().await, Some(5));
    serves_others(&mut server).await;
}

#[tokio::test]
async fn unsupported_methods_are_rejected() {
    let mut server = Served::start("serve: {}");
    for (method, path) in
        [("BREW", "/rate/a"), ("TRACE", "/rate/a"), ("PATCH", "/debug"), ("DELETE", "/healthz")]
    {
        let answer: WireResponse = in_time(ask(server.addr(), method, path)).await;
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        assert!(header(&answer.head, "allow").is_some(), "{answer:?}");
    }
    let head = b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let received = in_time(exchange(server.addr(), head)).await;
    assert_eq!(statuses(&received), [200]);
    assert!(
        received.ends_with(b"\r\n\r\n"),
        "a head without a body: {:?}",
        String::from_utf8_lossy(&received)
    );
    serves_others(&mut server).await;
}
