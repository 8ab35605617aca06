//! Request bodies that don't end: a client occupies only its part of the memory for bodies.

use std::convert::Infallible;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::FuturesUnordered;
use futures_util::stream::{self, StreamExt};
use paceline_testing::http::{http1, http2};
use reqwest::{Body, Client, RequestBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Answering;
use crate::proxy::rig::Proxy;

/// A server with 2 MiB for bodies, and a reverse proxy at this address that states its clients.
async fn start() -> Proxy {
    start_with("").await
}

async fn start_with(more: &str) -> Proxy {
    let serve = "trusted_proxies: ['127.0.0.1']\nbounds: {body: 1048576, buffered: 2097152}";
    Proxy::serving(Answering::start().await.addr, serve, more).await
}

/// A request of a client at this address, whose body has this many bytes and does not end.
fn unfinished(
    http: &Client,
    proxy: &Proxy,
    path: &str,
    client: &str,
    bytes: usize,
) -> RequestBuilder {
    let begun = stream::iter([Ok::<_, Infallible>(vec![b' '; bytes])]);
    let body = Body::wrap_stream(begun.chain(stream::pending()));
    post(http, proxy, path, client).body(body)
}

fn post(http: &Client, proxy: &Proxy, path: &str, client: &str) -> RequestBuilder {
    let post = http.post(proxy.url(path)).header("content-type", "application/json");
    post.header("x-forwarded-for", client)
}

/// Sends a small request, and returns its status.
async fn small(proxy: &Proxy, path: &str, client: &str) -> u16 {
    let body = r#"{"keys": ["k"], "model": "m", "messages": []}"#;
    let body = if path == RESERVE { r#"{"keys": ["k"]}"# } else { body };
    post(&http1(), proxy, path, client).body(body).send().await.unwrap().status().as_u16()
}

/// Sends a complete body of this size until it isn't refused for want of memory.
async fn until_there_is_room(proxy: &Proxy, path: &str, client: &str, bytes: usize) {
    let send = || post(&http1(), proxy, path, client).body(vec![b' '; bytes]).send();
    while send().await.unwrap().status() == 503 {
        tokio::task::yield_now().await;
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

const RESERVE: &str = "/v1/reserve";
const CHAT: &str = "/up/v1/chat/completions";

#[tokio::test]
async fn unfinished_bodies_of_a_client_leave_room_for_others() {
    for (version, http) in [("HTTP/1.1", http1()), ("HTTP/2", http2())] {
        for path in [RESERVE, CHAT] {
            let case = format!("{version} {path}");
            let proxy = start().await;
            let one = |n: usize| unfinished(&http, &proxy, path, "10.0.0.1", 200_000 + n).send();
            let mut uploads: FuturesUnordered<_> = (0..20).map(one).collect();
            // 1 MiB, half of the memory, holds five of them.
            for refused in 0..15 {
                let response = uploads.next().await.unwrap();
                let response = response.unwrap_or_else(|error| panic!("{case}: {error:?}"));
                assert_eq!(response.status(), 503, "{case}: {refused}");
                assert_eq!(response.headers()["retry-after"], "1", "{case}");
            }
            for client in ["10.0.0.2", "10.0.0.3"] {
                assert!(small(&proxy, path, client).await < 300, "{case}");
                until_there_is_room(&proxy, path, client, 250_000).await;
            }
            // What ends, or is cancelled, gives its part back.
            drop(uploads);
            until_there_is_room(&proxy, path, "10.0.0.1", 250_000).await;
            proxy.server.shutdown().await.unwrap();
        }
    }
}

#[tokio::test]
async fn renewed_uploads_do_not_lock_others_out() {
    let proxy = start().await;
    let http = http1();
    let longest = (1 << 20) - 1;
    for _ in 0..3 {
        let first = unfinished(&http, &proxy, CHAT, "10.0.0.1", longest).send();
        let first = tokio::spawn(first);
        // The second of two is refused once the first is there.
        loop {
            let second = post(&http, &proxy, CHAT, "10.0.0.1").body(vec![b' '; longest]);
            if second.send().await.unwrap().status() == 503 {
                break;
            }
        }
        assert_eq!(small(&proxy, CHAT, "10.0.0.2").await, 200);
        first.abort();
        assert!(first.await.is_err());
    }
}

#[tokio::test]
async fn compressed_bodies_count_with_what_they_decompress_to() {
    let proxy = start_with("quotas: {k: {rpm: 1}}\nwaiting: {max_wait: unlimited}").await;
    let http = http2();
    // A body that waits keeps its decompressed form.
    let mut text = r#"{"keys": ["k"], "wait_ms": 3600000}"#.to_owned();
    text.push_str(&" ".repeat(200_000));
    assert_eq!(small(&proxy, RESERVE, "10.0.0.2").await, 201);
    let one = |client| {
        let post = post(&http, &proxy, RESERVE, client).header("content-encoding", "gzip");
        post.body(gzip(&text)).send()
    };
    let mut waiting: FuturesUnordered<_> = (0..9).map(|_| one("10.0.0.1")).collect();
    for _ in 0..4 {
        assert_eq!(waiting.next().await.unwrap().unwrap().status(), 503);
    }
    while proxy.limiter.stats("k").waiting < 5 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn client_cannot_choose_its_address() {
    let serve = "bounds: {body: 1048576, buffered: 2097152}";
    let proxy = Proxy::serving(Answering::start().await.addr, serve, "").await;
    let http = http2();
    let one = |n: u8| unfinished(&http, &proxy, RESERVE, &format!("10.0.0.{n}"), 200_000).send();
    let mut uploads: FuturesUnordered<_> = (0..20).map(one).collect();
    for _ in 0..15 {
        assert_eq!(uploads.next().await.unwrap().unwrap().status(), 503);
    }
}

#[tokio::test]
async fn body_of_a_waiting_request_to_rate_is_not_kept() {
    let serve = "max_requests: 1\nwindow_millis: 3600000";
    let proxy =
        Proxy::serving(Answering::start().await.addr, serve, "waiting: {max_wait: unlimited}")
            .await;
    assert_eq!(small(&proxy, "/rate/a", "10.0.0.1").await, 200);
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let body = vec![b' '; 24 << 20];
    let head = format!(
        "POST /rate/a?canWait=true HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // More than the buffers of the connection hold.
    stream.write_all(&body).await.unwrap();
    assert_eq!(proxy.limiter.stats("rate/a").waiting, 1);
    proxy.limiter.reset("rate/a");
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}
