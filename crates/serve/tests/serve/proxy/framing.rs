//! Bodies whose framing is contradictory or oversized (RFC 9112, 6.3 and 7.1.1).

use super::rig::{Proxy, TestUpstream};

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
