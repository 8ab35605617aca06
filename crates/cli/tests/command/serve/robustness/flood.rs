use super::{Served, Wire, ask, in_time};

/// The number of keys, each requested once.
const FLOOD: usize = 5_000;
const CONNECTIONS: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_flood_is_bounded_and_keeps_known_keys() {
    let mut server =
        Served::start("serve: {max_requests: 2, window_millis: 3600000, bounds: {keys: 500}}");
    // The quota of this key is exhausted; a dropped key would be admitted again.
    let known = async |server: &Served| ask(server.addr(), "POST", "/rate/known").await.status;
    for expected in [200, 200, 429] {
        assert_eq!(known(&server).await, expected);
    }
    let before = server.memory();
    let flooding: Vec<_> =
        (0..CONNECTIONS).map(|from| tokio::spawn(flood(server.addr(), from))).collect();
    let mut refused = 0;
    for flooding in flooding {
        refused += in_time(flooding).await.expect("the task does not panic");
    }
    assert!(refused >= FLOOD - 500, "{refused} of {FLOOD} keys were refused");
    assert_eq!(known(&server).await, 429);
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes more");
    let answer = in_time(ask(server.addr(), "GET", "/healthz")).await;
    assert_eq!(answer.status, 200);
}

/// Requests new keys. Returns the number of refused requests.
async fn flood(addr: std::net::SocketAddr, from: usize) -> usize {
    let mut wire = Wire::connect(addr).await.expect("a connection");
    let mut refused = 0;
    for key in (from..FLOOD).step_by(CONNECTIONS) {
        let answer = wire.request("POST", &format!("/rate/flood-{key}")).await.expect("a response");
        assert!(matches!(answer.status, 200 | 429 | 503), "{answer:?}");
        refused += usize::from(answer.status != 200);
    }
    refused
}

#[tokio::test]
async fn idle_keys_are_dropped() {
    let mut server =
        Served::start("serve: {max_requests: 1, window_millis: 10, bounds: {keys: 10}}");
    let mut wire = Wire::connect(server.addr()).await.expect("a connection");
    for key in 0..100 {
        let path = format!("/rate/new-{key}");
        in_time(async {
            while wire.request("POST", &path).await.expect("a response").status != 200 {}
        })
        .await;
    }
    assert!(server.is_running());
}
