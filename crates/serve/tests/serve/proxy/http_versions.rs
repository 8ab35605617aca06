//! Clients and upstreams with different versions of HTTP.

use axum::body::Body;
use axum::http::{Request, Version};
use http_body_util::BodyExt;
use paceline_testing::http::h2c;

use super::rig::{Proxy, TestUpstream};

#[tokio::test]
async fn http2_client_reaches_http1_upstream() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let post = Request::post(proxy.url("/up/v1/embeddings?a=1"))
        .header("te", "trailers")
        .header("cookie", "a=1")
        .header("cookie", "b=2; c=3")
        .header("x-two", "1")
        .header("x-two", "2")
        .body(Body::from("{\"model\": \"\u{fc}\"}"));
    let sent = tokio::spawn(h2c().request(post.unwrap()));
    let mut request = up.request().await;
    assert_eq!(request.line(), "POST /v1/embeddings?a=1 HTTP/1.1");
    assert_eq!(request.body, "{\"model\": \"\u{fc}\"}".as_bytes());
    let mut forwarded: Vec<&str> =
        request.head.lines().skip(1).filter(|line| !line.is_empty()).collect();
    forwarded.sort_unstable();
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
    assert_eq!(forwarded, wanted);

    let fields = "connection: keep-alive, X-Hop\r\nkeep-alive: timeout=5\r\nx-hop: 1\r\nset-cookie: a=1\r\n\
        set-cookie: b=2\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n";
    request
        .write(format!("HTTP/1.1 201 Made\r\n{fields}\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n"))
        .await;
    let response = sent.await.unwrap().expect("a response");
    assert_eq!((response.status().as_u16(), response.version()), (201, Version::HTTP_2));
    let mut names: Vec<&str> = response.headers().keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["date", "set-cookie", "trailer", "x-request-id"]);
    assert_eq!(response.headers().get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    let body = response.into_body().collect().await.expect("a body");
    assert_eq!(body.trailers().expect("trailers are forwarded")["x-sum"], "7");
    assert_eq!(body.to_bytes(), "hi");
}
