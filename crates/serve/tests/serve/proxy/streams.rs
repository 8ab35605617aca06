//! Streaming responses: latency, backpressure and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;

use super::rig::{Proxy, TestUpstream, listen, raw};

#[tokio::test]
async fn chunk_is_delivered_before_the_next_is_sent() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "quotas: {gpt-4o: {rpm: 9, tpm: 9000}}").await;
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    request.begin_chunks().await;
    // The head is forwarded before the body.
    let response = sent.await.unwrap().unwrap();
    let mut body = response.bytes_stream();
    for n in 0..20 {
        let event = format!("data: {{\"n\": {n}}}\n\n");
        request.chunk(&event).await;
        assert_eq!(body.next().await.unwrap().unwrap(), event.as_bytes());
    }
    request.chunk("data: [DONE]\n\n").await;
    request.write("0\r\n\r\n").await;
    assert_eq!(body.next().await.unwrap().unwrap(), "data: [DONE]\n\n".as_bytes());
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn disconnect_cancels_upstream_and_admits_next() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "quotas: {gpt-4o: {concurrency: 1}}").await;
    // Once before the response, once within it.
    let early = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut first = up.request().await;
    let within = tokio::spawn(proxy.chat("gpt-4o").send());
    early.abort();
    first.closed().await;
    let mut second = up.request().await;
    second.begin_chunks().await;
    second.chunk("data: 1\n\n").await;
    let mut body = within.await.unwrap().unwrap().bytes_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), "data: 1\n\n".as_bytes());
    let last = tokio::spawn(proxy.chat("gpt-4o").send());
    drop(body);
    second.closed().await;
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(last.await.unwrap().unwrap().text().await.unwrap(), "{}");
}

#[tokio::test]
async fn disconnected_client_leaves_the_proxy_queue() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "quotas: {gpt-4o: {concurrency: 1}}").await;
    let first = tokio::spawn(proxy.chat("gpt-4o").send());
    let request = up.request().await;
    let disconnected = tokio::spawn(proxy.chat("gpt-4o").header("x-client", "first").send());
    while proxy.limiter.stats("gpt-4o").waiting < 1 {
        tokio::task::yield_now().await;
    }
    disconnected.abort();
    while proxy.limiter.stats("gpt-4o").waiting > 0 {
        tokio::task::yield_now().await;
    }
    let last = tokio::spawn(proxy.chat("gpt-4o").header("x-client", "last").send());
    request.answer("200 OK", "", "{}").await;
    first.await.unwrap().unwrap().text().await.unwrap();
    let request = up.request().await;
    assert_eq!(request.field("x-client"), Some("last"));
    request.answer("200 OK", "", "{}").await;
    assert_eq!(last.await.unwrap().unwrap().status(), 200);
    assert!(up.is_idle());
}

#[tokio::test]
async fn broken_upstream_stream_breaks_the_response() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let text = super::rig::chat("gpt-4o");
    let head = format!(
        "POST /up/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{text}",
        text.len()
    );
    let addr = proxy.addr();
    let client = tokio::spawn(async move { raw(addr, head).await });
    let mut request = up.request().await;
    request.begin_chunks().await;
    request.chunk("data: 1\n\n").await;
    drop(request);
    let text = client.await.unwrap();
    assert!(text.ends_with("9\r\ndata: 1\n\n\r\n"), "the last chunk is present: {text:?}");

    // A response with a content length, too.
    let sent = tokio::spawn(proxy.chat("gpt-4o").send());
    let mut request = up.request().await;
    request.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort").await;
    drop(request);
    let broken = match sent.await.unwrap() {
        Ok(response) => response.bytes().await.is_err(),
        Err(_) => true,
    };
    assert!(broken);
}

#[tokio::test]
async fn slow_client_applies_backpressure_to_one_stream() {
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let endless = listen(move |mut stream| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            if stream.write_all(head.as_bytes()).await.is_err() {
                return;
            }
            let piece = [b'x'; 65_536];
            while stream.write_all(&piece).await.is_ok() {
                count.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
        })
    })
    .await;
    let mut up = TestUpstream::start().await;
    let two = [("endless", endless, "openai"), ("up", up.addr, "openai")];
    let proxy = Proxy::with(&two, "", "").await;
    let get = super::rig::http().get(proxy.url("/endless/v1/models"));
    let unread = get.send().await.expect("a head");
    for _ in 0..200 {
        let sent = tokio::spawn(proxy.chat("gpt-4o").send());
        up.request().await.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    }
    // About the size of the kernel's buffers of two connections.
    assert!(written.load(Ordering::Relaxed) < 64 << 20, "{written:?}");
    drop(unread);
}
