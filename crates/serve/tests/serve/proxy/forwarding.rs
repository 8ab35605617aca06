//! Request and response bodies that are forwarded unchanged.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, Version};
use axum::serve::ListenerExt;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use super::rig::{Proxy, TestUpstream, chunks, raw};

/// Responds with the request body, whole or in chunks that depend on the seed in the path.
async fn echo(request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let kind = request.headers().get(CONTENT_TYPE).cloned();
    let body = to_bytes(request.into_body(), usize::MAX).await.expect("a body");
    let body = match path.strip_prefix("/v1/files/whole-") {
        Some(_) => Body::from(body),
        None => {
            let parts = body.chunks(1_777).map(|part| Ok::<_, std::io::Error>(part.to_vec()));
            let parts: Vec<_> = parts.collect();
            Body::from_stream(futures_util::stream::iter(parts))
        }
    };
    let mut response = Response::new(body);
    response.headers_mut().extend(kind.map(|kind| (CONTENT_TYPE, kind)));
    response
}

async fn start_echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("a local address");
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true)));
    let app = Router::new().fallback(echo);
    tokio::spawn(async move { axum::serve(listener, app).await });
    addr
}

#[tokio::test]
async fn bodies_are_forwarded_unchanged() {
    let proxy = Proxy::to(start_echo().await, "").await;
    let of = |http2: bool| {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.http2_only(http2).build_http::<Body>()
    };
    let clients = [(of(false), Version::HTTP_11), (of(true), Version::HTTP_2)];
    for seed in 0..120_u64 {
        let (client, version) = &clients[usize::try_from(seed % 2).unwrap()];
        let framing = if seed % 4 < 2 { "whole" } else { "parts" };
        let kind =
            ["application/json", "text/event-stream", "x/y"][usize::try_from(seed % 3).unwrap()];
        let sent = chunks(seed);
        let whole = sent.concat();
        let body = match seed % 5 {
            0 => Body::from(whole.clone()),
            _ => Body::from_stream(futures_util::stream::iter(
                sent.into_iter().map(Ok::<Bytes, std::io::Error>),
            )),
        };
        let mut request = Request::post(proxy.url(&format!("/up/v1/files/{framing}-{seed}")));
        request.headers_mut().unwrap().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let response = client.request(request.body(body).unwrap()).await.expect("a response");
        assert_eq!((response.status().as_u16(), response.version()), (200, *version));
        assert_eq!(response.headers()[CONTENT_TYPE], kind);
        let length = response.headers().get("content-length").cloned();
        assert!(whole.is_empty() || length.is_some() == (framing == "whole"), "{seed}: {length:?}");
        let received = response.into_body().collect().await.expect("a body").to_bytes();
        assert!(received == whole, "seed {seed}: {} bytes of {}", received.len(), whole.len());
    }
}

#[tokio::test]
async fn trailers_are_forwarded_if_accepted() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let head = "GET /up/v1/models HTTP/1.1\r\nhost: localhost\r\nte: trailers\r\nconnection: te, close\r\n\r\n";
    let addr = proxy.addr();
    let client = tokio::spawn(async move { raw(addr, head).await });
    let mut request = up.request().await;
    assert_eq!(request.field("te"), Some("trailers"));
    let fields = "transfer-encoding: chunked\r\ntrailer: x-sum\r\nconnection: close\r\n";
    request.write(format!("HTTP/1.1 200 OK\r\n{fields}\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n")).await;
    let response = client.await.unwrap();
    assert!(response.contains("trailer: x-sum\r\n"), "{response}");
    assert!(response.ends_with("\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n"), "{response}");
}

#[tokio::test]
async fn compressed_response_is_forwarded_unchanged() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "quotas: {gpt-4o: {rpm: 9, tpm: 9000}}").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").header("accept-encoding", "gzip").send());
    let request = up.request().await;
    assert_eq!(request.field("accept-encoding"), Some("identity"));
    request.answer("200 OK", "content-encoding: gzip\r\n", "not gzip at all").await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.text().await.unwrap(), "not gzip at all");
}

#[tokio::test]
async fn uncharged_request_keeps_accept_encoding() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let get = super::rig::http().get(proxy.url("/up/v1/models"));
    let sent = tokio::spawn(get.header("accept-encoding", "gzip").send());
    let request = up.request().await;
    assert_eq!(request.field("accept-encoding"), Some("gzip"));
    request.answer("200 OK", "", "[]").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn head_response_keeps_content_length() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let head = "HEAD /up/v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let addr = proxy.addr();
    let client = tokio::spawn(async move { raw(addr, head).await });
    let mut request = up.request().await;
    assert_eq!(request.line(), "HEAD /v1/models HTTP/1.1");
    request.write("HTTP/1.1 200 OK\r\ncontent-length: 1234\r\nconnection: close\r\n\r\n").await;
    drop(request);
    let response = client.await.unwrap();
    assert_eq!(super::rig::field(&response, "content-length"), Some("1234"));
}
