//! Clients and TLS upstreams with different versions of HTTP.

use axum::body::Body;
use axum::http::{Request, Response, Version};
use http_body_util::BodyExt;
use paceline_testing::http::h2c;
use paceline_testing::upstream::raw;

use super::tls::{Ca, TlsUpstream, head};

#[tokio::test]
async fn http2_request_gets_upstream_authority() {
    let ca = Ca::new("ours");
    let mut up = TlsUpstream::start(ca.certify("127.0.0.1"), &["h2"]).await;
    let served = ca.trusted(&[("up", up.url())], "");
    let url = format!("http://{}/up/v1/models?b", served.addr());
    // The request has `:authority` and `host`; neither is the upstream's.
    let host = served.addr().to_string();
    let sent_request = Request::get(url).header("host", host).body(Body::empty());
    let sent = tokio::spawn(h2c().request(sent_request.unwrap()));
    let request = up.request().await;
    assert_eq!(request.parts.uri.to_string(), up.url() + "/v1/models?b");
    assert_eq!((request.field("host"), request.parts.version), (None, Version::HTTP_2));
    request.answer(Response::new("[]".into()));
    let response = sent.await.unwrap().expect("a response");
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "[]");
}

#[tokio::test]
async fn http1_client_reads_whole_http2_response() {
    let ca = Ca::new("ours");
    let mut up = TlsUpstream::start(ca.certify("127.0.0.1"), &["h2"]).await;
    let served = ca.trusted(&[("up", up.url())], "");
    let addr = served.addr();
    let mut answers = Vec::new();
    for length in [Some("4"), None] {
        let text = "GET /up/v1/models HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
        let client = tokio::spawn(async move { raw(addr, text).await });
        let request = up.request().await;
        assert_eq!(request.parts.uri.authority().unwrap().as_str(), up.addr.to_string());
        let fields: Vec<_> = length.map(|length| ("content-length", length)).into_iter().collect();
        let sending = request.begin(head(&fields));
        sending.chunk("1234").await;
        drop(sending);
        answers.push(client.await.unwrap());
    }
    assert!(answers[0].contains("\r\ncontent-length: 4\r\n"), "{answers:?}");
    assert!(answers[0].ends_with("\r\n\r\n1234"), "{answers:?}");
    assert!(answers[1].ends_with("\r\n\r\n4\r\n1234\r\n0\r\n\r\n"), "{answers:?}");
}
