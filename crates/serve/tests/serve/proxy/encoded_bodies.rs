//! Request bodies that a client compresses: read for their model, and forwarded as they came.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use paceline_testing::upstream::field;
use reqwest::{RequestBuilder, Response};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::rig::{Proxy, TestUpstream, chat, http, json};

const ENCODINGS: [&str; 6] = ["gzip", "X-GZIP", "deflate", "br", "zstd", "ZStd"];

fn encode(encoding: &str, body: &[u8]) -> Vec<u8> {
    match encoding.to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut encoded = Vec::new();
            let mut encoder = brotli::CompressorWriter::new(&mut encoded, 4_096, 5, 22);
            encoder.write_all(body).unwrap();
            drop(encoder);
            encoded
        }
        "zstd" => compress_to_vec(body, CompressionLevel::Fastest),
        other => panic!("{other}"),
    }
}

fn post(proxy: &Proxy, encoding: &str, body: Vec<u8>) -> RequestBuilder {
    let post = http().post(proxy.url("/up/v1/chat/completions"));
    let post = post.header("content-type", "application/json");
    post.header("content-encoding", encoding).body(body)
}

async fn refused(proxy: &Proxy, encoding: &str, body: Vec<u8>) -> Response {
    post(proxy, encoding, body).send().await.unwrap()
}

#[tokio::test]
async fn compressed_request_is_charged_and_forwarded_as_it_came() {
    let mut up = TestUpstream::start().await;
    for encoding in ENCODINGS {
        let quotas = "quotas: {gpt-4o: {rpd: 1}}";
        let proxy = Proxy::serving(up.addr, "mode: reject", quotas).await;
        let body = encode(encoding, chat("gpt-4o").as_bytes());
        let sent = tokio::spawn(post(&proxy, encoding, body.clone()).send());
        let request = up.request().await;
        assert_eq!(field(&request.head, "content-encoding"), Some(encoding));
        assert_eq!(field(&request.head, "content-length"), Some(&*body.len().to_string()));
        assert!(request.body == body, "{encoding}");
        request.answer("200 OK", "", "{}").await;
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
        assert_eq!(proxy.used("gpt-4o"), 1, "{encoding}");
        assert_eq!(refused(&proxy, encoding, body).await.status(), 429, "{encoding}");
    }
}

#[tokio::test]
async fn compressed_stream_that_states_no_usage_is_asked_for_it() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let body = br#"{"model": "gpt-4o", "messages": [], "stream": true}"#;
    let sent = tokio::spawn(post(&proxy, "zstd", encode("zstd", body)).send());
    let request = up.request().await;
    assert_eq!(field(&request.head, "content-encoding"), None);
    let forwarded = String::from_utf8(request.body.clone()).unwrap();
    assert!(forwarded.contains(r#""include_usage":true"#), "{forwarded}");
    assert_eq!(field(&request.head, "content-length"), Some(&*forwarded.len().to_string()));
    request.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn body_that_cannot_be_decompressed_is_refused() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::to(up.addr, "").await;
    let chat = chat("gpt-4o");
    for encoding in ENCODINGS {
        let whole = encode(encoding, chat.as_bytes());
        let cut = whole[..whole.len() - 1].to_vec();
        for broken in [chat.clone().into_bytes(), cut, whole.repeat(2), Vec::new()] {
            let response = refused(&proxy, encoding, broken).await;
            assert_eq!(response.status(), 400, "{encoding}");
            assert_eq!(json(response).await["code"], "broken_body", "{encoding}");
        }
    }
    for unknown in ["compress", "br, gzip", ""] {
        let response = refused(&proxy, unknown, encode("gzip", chat.as_bytes())).await;
        assert_eq!(response.status(), 415, "{unknown}");
        let known = response.headers()["accept-encoding"].to_str().unwrap();
        assert_eq!(known, "gzip, deflate, br, zstd, identity");
    }
    assert!(up.is_idle());
}

#[tokio::test]
async fn body_that_decompresses_to_too_much_is_refused() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {body: 4000000, buffered: 8000000}", "").await;
    let zeros = |megabytes: usize| vec![b' '; megabytes << 20];
    for encoding in ENCODINGS {
        // More than 100 times its length, and more than the longest body.
        for megabytes in [3, 30] {
            let response = refused(&proxy, encoding, encode(encoding, &zeros(megabytes))).await;
            assert_eq!(response.status(), 413, "{encoding}");
            assert_eq!(json(response).await["code"], "body_too_large");
        }
    }
    assert!(up.is_idle());
}

#[tokio::test]
async fn decompressed_bodies_count_to_the_memory_for_bodies() {
    let mut up = TestUpstream::start().await;
    let proxy = Proxy::serving(up.addr, "bounds: {body: 1000000, buffered: 2000000}", "").await;
    let noise = (0..200_000_u64).map(|n| format!("{:x}", n * n * 0x9e37)).collect::<String>();
    let text = format!(r#"{{"model": "m", "messages": [], "user": "{}"}}"#, &noise[..900_000]);
    let body = encode("gzip", text.as_bytes());
    assert!(body.len() > 200_000, "{}", body.len());
    let response = refused(&proxy, "gzip", body).await;
    assert_eq!(
        (response.status().as_u16(), json(response).await["code"].as_str()),
        (503, Some("busy"))
    );
    let small = encode("gzip", chat("m").as_bytes());
    let sent = tokio::spawn(post(&proxy, "gzip", small).send());
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(sent.await.unwrap().unwrap().status(), 200);
    let identity = tokio::spawn(proxy.chat("m").header("content-encoding", "Identity").send());
    up.request().await.answer("200 OK", "", "{}").await;
    assert_eq!(identity.await.unwrap().unwrap().status(), 200);
}
