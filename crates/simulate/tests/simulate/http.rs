//! The provider over HTTP, called with raw requests.

use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use paceline_simulate::{OutputSize, Settings, SimulatedServer};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::chat;

async fn bind(settings: Settings) -> SimulatedServer {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    SimulatedServer::bind(settings, any).await.expect("a free port")
}

/// Sends one request on a new connection, and returns the head and body of the response.
async fn call(addr: SocketAddr, method: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("the response is read");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).expect("the body is JSON")
}

#[tokio::test]
async fn server_answers_refuses_and_counts() {
    let settings = Settings::default().with_rpm(1).with_output(OutputSize::Fixed(12));
    let server = bind(settings).await;
    let body = chat("Hello").to_string();
    let (head, answer) = call(server.addr(), "POST", "/v1/chat/completions", &body).await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("x-ratelimit-limit-requests: 1"), "{head}");
    assert_eq!(json_of(&answer)["usage"]["completion_tokens"], 12);

    let (head, answer) = call(server.addr(), "POST", "/v1/chat/completions", &body).await;
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests"), "{head}");
    assert!(head.contains("retry-after-ms: "), "{head}");
    assert_eq!(json_of(&answer)["error"]["code"], "rate_limit_exceeded");

    let (_, stats) = call(server.addr(), "GET", "/stats", "").await;
    assert_eq!(json_of(&stats)["admitted"], 1);
    assert_eq!(json_of(&stats)["models"]["gpt-4o"]["refused"], 1);
    assert_eq!(server.stats().total.received, 2);
    server.shutdown().await.expect("a clean shutdown");
}

/// A log in memory.
#[derive(Debug, Clone, Default)]
struct SharedLog(Arc<Mutex<Vec<u8>>>);

impl Write for SharedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn log_has_a_line_per_reply() {
    let log = SharedLog::default();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings::default().with_rpm(1).with_output(OutputSize::Fixed(12));
    let server = SimulatedServer::bind_with_log(settings, any, BufWriter::new(log.clone()));
    let server = server.await.expect("a free port");
    let body = chat("Hello").to_string();
    for _ in 0..2 {
        call(server.addr(), "POST", "/v1/chat/completions", &body).await;
    }
    call(server.addr(), "GET", "/stats", "").await;
    let charged = server.stats().total.charged_tokens;
    server.shutdown().await.expect("a clean shutdown");
    let text = String::from_utf8(log.0.lock().clone()).expect("UTF-8");
    let lines: Vec<Value> = text.lines().map(json_of).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let first =
        json!({"at": 0.0, "latency": 0.0, "status": 200, "tokens": charged, "micro_usd": 0});
    assert_eq!(lines[0], first);
    assert_eq!((&lines[1]["status"], &lines[1]["tokens"]), (&json!(429), &json!(0)));
    assert!(lines[1]["at"].as_f64() > Some(0.0), "{text}");
}

/// A log on a full disk.
#[derive(Debug)]
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn log_error_is_returned_at_shutdown() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = SimulatedServer::bind_with_log(Settings::default(), any, FullDisk);
    let server = server.await.expect("a free port");
    let body = chat("Hello").to_string();
    let (head, _) = call(server.addr(), "POST", "/v1/chat/completions", &body).await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let error = server.shutdown().await.expect_err("the log is incomplete");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_not_found() {
    let server = bind(Settings::default()).await;
    for (method, path) in [("POST", "/v1/elsewhere"), ("GET", "/v1/chat/completions")] {
        let (head, body) = call(server.addr(), method, path, "{}").await;
        assert!(head.starts_with("HTTP/1.1 404"), "{head}");
        assert_eq!(json_of(&body)["error"]["message"], format!("Invalid URL ({method} {path})"));
    }
}

#[tokio::test]
async fn stream_arrives_whole_and_in_order() {
    let latency = Duration::from_millis(40);
    let server = bind(Settings::default().with_latency(latency, latency)).await;
    let mut body = chat("Hello");
    body["stream"] = json!(true);
    body["metadata"] = json!({"output_tokens": 3});
    let (head, body) = call(server.addr(), "POST", "/chat/completions", &body.to_string()).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let role = body.find("\"role\"").expect("a first chunk");
    let end = body.find("\"finish_reason\":\"stop\"").expect("a last chunk");
    let done = body.find("data: [DONE]").expect("an end");
    assert!(role < end && end < done, "{body}");
}

#[tokio::test]
async fn request_is_charged_on_arrival_and_answered_later() {
    let day = Duration::from_secs(86_400);
    let server = bind(Settings::default().with_rpm(1).with_latency(day, day)).await;
    let body = chat("Hello").to_string();
    let slow = call(server.addr(), "POST", "/v1/chat/completions", &body);
    // The first request is charged, with a latency of a day; the second is refused immediately.
    let refused = tokio::time::timeout(TIMEOUT, async {
        while server.stats().total.admitted == 0 {
            tokio::task::yield_now().await;
        }
        call(server.addr(), "POST", "/v1/chat/completions", &body).await
    });
    tokio::select! {
        biased;
        refused = refused => {
            let (head, _) = refused.expect("the second request gets a response");
            assert!(head.starts_with("HTTP/1.1 429"), "{head}");
        }
        _ = slow => panic!("the response came before its latency"),
    }
}

#[tokio::test]
async fn shutdown_waits_for_responses_in_flight() {
    let latency = Duration::from_millis(80);
    let server = bind(Settings::default().with_latency(latency, latency)).await;
    let addr = server.addr();
    let body = chat("Hello").to_string();
    let slow = call(addr, "POST", "/v1/chat/completions", &body);
    let shutdown = async {
        while server.stats().total.admitted == 0 {
            tokio::task::yield_now().await;
        }
        server.shutdown().await
    };
    let both = async { tokio::join!(slow, shutdown) };
    let ((head, _), ended) = tokio::time::timeout(TIMEOUT, both).await.expect("both end");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(ended.expect("a clean shutdown").total.admitted, 1);
    assert!(TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn http2_client_receives_http2_settings() {
    const SETTINGS: u8 = 4;
    let server = bind(Settings::default()).await;
    let mut stream = TcpStream::connect(server.addr()).await.expect("a connection");
    let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    stream.write_all(hello).await.expect("the preface is sent");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.expect("a frame is read");
    assert_eq!(frame[3], SETTINGS);
}

/// The timeout of a failing test.
const TIMEOUT: Duration = Duration::from_secs(20);
