//! `paceline bench`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::rig::{CommandOutput, TestHome, output_of};

/// The number of received requests, by URL and token.
type RequestCounts = Arc<Mutex<BTreeMap<String, u64>>>;

/// Starts a server that counts its requests and refuses every third.
async fn server() -> (SocketAddr, RequestCounts) {
    let counts = RequestCounts::default();
    let server_counts = counts.clone();
    let answer = async move |uri: Uri, headers: HeaderMap| {
        let token = headers.get("x-paceline-token").map_or("", |token| token.to_str().unwrap());
        let mut counts = server_counts.lock();
        *counts.entry(format!("{uri} {token}")).or_default() += 1;
        let all = counts.values().sum::<u64>();
        if all.is_multiple_of(3) { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK }
    };
    let app = Router::new().fallback(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async { axum::serve(listener, app).await });
    (addr, counts)
}

/// Starts a server that accepts connections and passes them to `then`, which drops or keeps them.
async fn silent(then: fn(tokio::net::TcpStream, &mut Vec<tokio::net::TcpStream>)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            then(stream, &mut kept);
        }
    });
    addr
}

async fn bench(arguments: String) -> CommandOutput {
    let run = move || {
        let home = TestHome::new();
        let mut command = home.paceline(&format!("bench {arguments}"));
        output_of(command.env("PACELINE_TOKEN", "t0ken"))
    };
    tokio::task::spawn_blocking(run).await.expect("the command runs")
}

#[tokio::test]
async fn responses_are_counted_by_status() {
    for protocol in ["", "--http2"] {
        let (addr, _) = server().await;
        let output =
            bench(format!("http://{addr} --requests 300 --connections 8 --json {protocol}"));
        let output = output.await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
        let report = output.json();
        assert_eq!(report["requests"], 300);
        assert_eq!(report["statuses"], serde_json::json!({"200": 200, "429": 100}));
        assert_eq!((&report["errors"], &report["unanswered"]), (&0.into(), &0.into()));
        let latency = |name: &str| report["latency_ms"][name].as_f64().expect("a number");
        let order = ["p50", "p90", "p99", "max"].map(latency);
        assert!(order.is_sorted() && order[0] > 0.0, "{report}");
    }
}

#[tokio::test]
async fn keys_rotate_and_token_is_sent() {
    let (addr, counts) = server().await;
    let output =
        bench(format!("http://{addr} --requests 30 --keys 3 --connections 4 --wait")).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("responses   30, ") && output.stdout.contains("429: 10"),
        "{output:?}"
    );
    let expected = (0..3).map(|key| (format!("/rate/bench-{key}?canWait=true t0ken"), 10));
    assert_eq!(*counts.lock(), expected.collect());
}

#[tokio::test]
async fn broken_connections_are_counted_and_reported() {
    let addr = silent(|stream, _| drop(stream)).await;
    let output = bench(format!("http://{addr} --requests 6 --connections 2 --json")).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    let report = output.json();
    assert_eq!((&report["errors"], &report["requests"]), (&6.into(), &0.into()), "{report}");
    assert!(report["first_error"].is_string());
}

#[tokio::test]
async fn end_of_benchmark_counts_unanswered_requests() {
    let addr = silent(|stream, kept| kept.push(stream)).await;
    let output = bench(format!("http://{addr} --duration 100ms --connections 5 --json")).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    let report = output.json();
    assert_eq!((&report["unanswered"], &report["errors"]), (&5.into(), &0.into()), "{report}");
}

#[test]
fn remote_server_requires_allow_remote() {
    // An address reserved for documentation (RFC 5737).
    let output = TestHome::new().run("bench http://192.0.2.1:8080");
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("not this machine") && output.stderr.contains("--allow-remote"));
}

#[test]
fn invalid_server_url_error_omits_password() {
    for url in
        ["https://127.0.0.1:1", "http://me:s3cret@127.0.0.1:1", "http://127.0.0.1:1/rate", "8080"]
    {
        let output = TestHome::new().run(&format!("bench {url}"));
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(
            output.stderr.starts_with("paceline: ") && !output.stderr.contains("s3cret"),
            "{output:?}"
        );
    }
    let unused = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let output = TestHome::new().run(&format!("bench http://{}", unused.expect("a port")));
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("refused"), "{output:?}");
}
