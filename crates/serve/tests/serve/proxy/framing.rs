//! Bodies whose framing is contradictory or oversized (RFC 9112, 6.3 and 7.1.1).

use super::rig::{Proxy, TestUpstream, json, raw};

#[tokio::test]
async fn chunked_response_with_a_length_is_forwarded_whole() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    for fields in [
        "content-length: 3\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 9000\r\n",
    ] {
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        let mut request = up.request().await;
        let body = "5\r\nhello\r\n0\r\n\r\n";
        request.write(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")).await;
        let response = sent.await.unwrap().unwrap();
        assert_eq!(response.headers().get("content-length"), None, "{fields}");
        assert_eq!(response.text().await.unwrap(), "hello", "{fields}");
    }
}

/// A chunk with an extension of 100 kB.
fn extended_chunk() -> String {
    format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(100_000))
}

#[tokio::test]
async fn oversized_chunk_extension_of_upstream_is_bad_gateway() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    request.write(format!("{head}{}", extended_chunk())).await;
    let response = sent.await.unwrap().unwrap();
    assert_eq!(response.status(), 502);
    assert_eq!(json(response).await["code"], "upstream_failed");
}

#[tokio::test]
async fn oversized_chunk_extension_of_client_is_bad_request() {
    let up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    for path in ["/up/v1/chat/completions", "/v1/reserve"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
             transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        let answer = raw(proxy.addr(), format!("{head}{}", extended_chunk())).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer:?}");
    }
}
