//! A client and an upstream that speak different versions of HTTP.

use axum::body::Body;
use axum::http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::rig::{Proxy, Upstream, raw};
use super::tls::{Ca, Secure, head};

/// A client of HTTP/2 that knows beforehand that the server speaks it.
fn h2c() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

#[tokio::test]
async fn a_client_of_http2_is_one_of_http1_to_an_upstream_of_http1() {
    let mut up = Upstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let request = Request::post(proxy.url("/up/v1/embeddings?a=1"))
        .header("te", "trailers")
        .header("cookie", "a=1")
        .header("cookie", "b=2; c=3")
        .header("x-two", "1")
        .header("x-two", "2")
        .body(Body::from("{\"input\": \"\u{fc}\"}"));
    let sent = tokio::spawn(h2c().request(request.unwrap()));
    let mut asked = up.request().await;
    assert_eq!(asked.line(), "POST /v1/embeddings?a=1 HTTP/1.1");
    assert_eq!(asked.body, "{\"input\": \"\u{fc}\"}".as_bytes());
    let mut came: Vec<&str> = asked.head.lines().skip(1).filter(|line| !line.is_empty()).collect();
    came.sort_unstable();
    let host = format!("host: {}", up.addr);
    let wanted = [
        "accept-encoding: identity",
        "connection: te",
        "content-length: 15",
        "cookie: a=1; b=2; c=3",
        &host,
        "te: trailers",
        "x-two: 1",
        "x-two: 2",
    ];
    assert_eq!(came, wanted);

    let fields = "connection: keep-alive, X-Hop\r\nkeep-alive: timeout=5\r\nx-hop: 1\r\nset-cookie: a=1\r\n\
        set-cookie: b=2\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n";
    asked.write(format!("HTTP/1.1 201 Made\r\n{fields}\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n")).await;
    let response = sent.await.unwrap().expect("an answer");
    assert_eq!((response.status().as_u16(), response.version()), (201, Version::HTTP_2));
    let mut names: Vec<&str> = response.headers().keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["date", "set-cookie", "trailer", "x-request-id"]);
    assert_eq!(response.headers().get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    let body = response.into_body().collect().await.expect("a body");
    assert_eq!(body.trailers().expect("they pass")["x-sum"], "7");
    assert_eq!(body.to_bytes(), "hi");
}

#[tokio::test]
async fn a_client_of_http2_reaches_an_upstream_of_http2_under_its_own_name() {
    let ca = Ca::new("ours");
    let mut up = Secure::start(ca.certify("127.0.0.1"), &["h2"]).await;
    let served = ca.trusted(&[("up", up.url())], "");
    let url = format!("http://{}/up/v1/models?b", served.addr());
    // It has a `host` beside its `:authority`; neither is the upstream's.
    let host = served.addr().to_string();
    let request = Request::get(url).header("host", host).body(Body::empty());
    let sent = tokio::spawn(h2c().request(request.unwrap()));
    let asked = up.request().await;
    assert_eq!(asked.parts.uri.to_string(), up.url() + "/v1/models?b");
    assert_eq!((asked.field("host"), asked.parts.version), (None, Version::HTTP_2));
    asked.answer(Response::new("[]".into()));
    let response = sent.await.unwrap().expect("an answer");
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "[]");
}

#[tokio::test]
async fn a_client_of_http1_reads_an_answer_of_http2_to_its_end() {
    let ca = Ca::new("ours");
    let mut up = Secure::start(ca.certify("127.0.0.1"), &["h2"]).await;
    let served = ca.trusted(&[("up", up.url())], "");
    let addr = served.addr();
    let mut answers = Vec::new();
    for length in [Some("4"), None] {
        let text = "GET /up/v1/models HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
        let client = tokio::spawn(async move { raw(addr, text).await });
        let asked = up.request().await;
        assert_eq!(asked.parts.uri.authority().unwrap().as_str(), up.addr.to_string());
        let fields: Vec<_> = length.map(|length| ("content-length", length)).into_iter().collect();
        let sending = asked.begin(head(&fields));
        sending.chunk("1234").await;
        drop(sending);
        answers.push(client.await.unwrap());
    }
    assert!(answers[0].contains("\r\ncontent-length: 4\r\n"), "{answers:?}");
    assert!(answers[0].ends_with("\r\n\r\n1234"), "{answers:?}");
    assert!(answers[1].ends_with("\r\n\r\n4\r\n1234\r\n0\r\n\r\n"), "{answers:?}");
}
