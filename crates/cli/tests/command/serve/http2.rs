//! An HTTP/2 upstream, selected by ALPN.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, HeaderValue, Response, Version};
use futures_util::StreamExt;

use super::tls::{Ca, ReceivedRequest, TlsUpstream, head};
use crate::serve::process::Served;
use paceline_testing::upstream::{field, http, raw};

/// Starts an upstream that allows `max_streams` concurrent streams, and a proxy in front of it.
async fn start(max_streams: Option<u32>) -> (Served, TlsUpstream) {
    let ca = Ca::new("ours");
    let up =
        TlsUpstream::with_streams(ca.certify("127.0.0.1"), &["h2", "http/1.1"], max_streams).await;
    (ca.trusted(&[("up", up.url())], ""), up)
}

fn get(served: &Served, path: &str) -> reqwest::RequestBuilder {
    http().get(format!("http://{}/up{path}", served.addr()))
}

/// Opens the connection that later requests reuse.
async fn connect(served: &Served, up: &mut TlsUpstream) {
    let sent = tokio::spawn(get(served, "/first").send());
    up.request().await.answer(Response::new("{}".into()));
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

fn path(request: &ReceivedRequest) -> String {
    request.parts.uri.path().to_owned()
}

#[tokio::test]
async fn requests_share_connection_without_blocking() {
    let (served, mut up) = start(None).await;
    connect(&served, &mut up).await;
    let paths: Vec<String> = (0..50).map(|n| format!("/{n}")).collect();
    let sent: Vec<_> = paths.iter().map(|path| tokio::spawn(get(&served, path).send())).collect();
    let mut requests = Vec::new();
    while requests.len() < paths.len() {
        requests.push(up.request().await);
    }
    let received: BTreeSet<String> = requests.iter().map(path).collect();
    assert_eq!(received, paths.iter().cloned().collect());
    assert!(requests.iter().all(|request| request.parts.version == Version::HTTP_2));
    assert_eq!(up.connections(), 1);
    // The last request is answered first.
    for request in requests.into_iter().rev() {
        let path = path(&request);
        request.answer(Response::new(path.into()));
    }
    for (sent, path) in sent.into_iter().zip(&paths) {
        assert_eq!(sent.await.unwrap().unwrap().text().await.unwrap(), *path);
    }
}

#[tokio::test]
async fn streams_pass_through_and_end_on_disconnect() {
    let (served, mut up) = start(None).await;
    connect(&served, &mut up).await;
    let mut streams = Vec::new();
    for n in 0..3 {
        let sent = tokio::spawn(get(&served, &format!("/{n}")).send());
        let sending = up.request().await.begin(head(&[("content-type", "text/event-stream")]));
        streams.push((sending, sent.await.unwrap().unwrap().bytes_stream()));
    }
    for event in 0..5 {
        for (n, (sending, body)) in streams.iter_mut().enumerate() {
            let event = format!("data: {event} of {n}\n\n");
            sending.chunk(&event).await;
            assert_eq!(body.next().await.unwrap().unwrap(), event.as_bytes());
        }
    }
    // One client disconnects during its response, another before it.
    let (sending, body) = streams.remove(1);
    drop(body);
    sending.gone().await;
    let early = tokio::spawn(get(&served, "/early").send());
    let mut request = up.request().await;
    early.abort();
    request.gone().await;
    for (sending, mut body) in streams {
        sending.chunk("data: on\n\n").await;
        assert_eq!(body.next().await.unwrap().unwrap(), "data: on\n\n".as_bytes());
        drop(sending);
        assert!(body.next().await.is_none());
    }
    connect(&served, &mut up).await;
    assert_eq!(up.connections(), 1);
}

#[tokio::test]
async fn requests_above_stream_limit_wait() {
    let (served, mut up) = start(Some(2)).await;
    connect(&served, &mut up).await;
    let sent: Vec<_> =
        (0..5).map(|n| tokio::spawn(get(&served, &format!("/{n}")).send())).collect();
    let (first, second) = (up.request().await, up.request().await);
    first.answer(Response::new("{}".into()));
    let third = up.request().await;
    for request in [second, third] {
        request.answer(Response::new("{}".into()));
    }
    for _ in 0..2 {
        up.request().await.answer(Response::new("{}".into()));
    }
    for sent in sent {
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(up.connections(), 1);
}

#[tokio::test]
async fn hop_by_hop_fields_are_removed_and_trailers_pass() {
    let (served, mut up) = start(None).await;
    let fields = "host: evil.example\r\nauthorization: Bearer sk-1\r\nconnection: close, X-Named, te\r\n\
        x-named: 1\r\nkeep-alive: timeout=5\r\nte: gzip;q=0.5, trailers\r\nupgrade: h2c\r\n\
        proxy-connection: close\r\ntransfer-encoding: chunked\r\n";
    let text = format!(
        "POST /up/v1/files HTTP/1.1\r\n{fields}trailer: x-sum\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n"
    );
    let addr = served.addr();
    let client = tokio::spawn(async move { raw(addr, text).await });
    let request = up.request().await;
    assert_eq!(request.parts.version, Version::HTTP_2);
    // `:authority` is set, and `host` is not.
    assert_eq!(request.parts.uri.authority().map(ToString::to_string), Some(up.addr.to_string()));
    let mut names: Vec<&str> = request.parts.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept-encoding", "authorization", "te", "trailer"]);
    assert_eq!(request.field("te"), Some("trailers"));
    assert_eq!(
        (&request.body[..], &request.trailers["x-sum"]),
        (&b"hi"[..], &HeaderValue::from_static("7"))
    );

    let sending = request.begin(head(&[("trailer", "x-total"), ("set-cookie", "a=1")]));
    sending.chunk("ho").await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-total", HeaderValue::from_static("9"));
    sending.trailers(trailers).await;
    let answer = client.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(field(&answer, "set-cookie"), Some("a=1"));
    assert!(answer.ends_with("\r\n2\r\nho\r\n0\r\nx-total: 9\r\n\r\n"), "{answer}");
}
