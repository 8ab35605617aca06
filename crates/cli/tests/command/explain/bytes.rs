//! Encoded and compressed bodies.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::rig::{entry, har, read, read_one};

fn content(body: &[u8]) -> Value {
    let text = BASE64_STANDARD.encode(body);
    let headers = json!([{"name": "content-encoding", "value": "gzip"}]);
    let content = json!({"text": text, "encoding": "base64"});
    entry("https://h/v1", json!({}), json!({"status": 200, "headers": headers, "content": content}))
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(body).expect("writing to memory succeeds");
    gzip.finish().expect("writing to memory succeeds")
}

#[test]
fn recorded_gzip_is_decompressed() {
    assert_eq!(read_one(&content(&gzip(b"{\"usage\": 1}"))).response.body, b"{\"usage\": 1}");
    assert_eq!(read_one(&content(b"{}")).response.body, b"{}");
}

#[test]
fn truncated_gzip_is_decoded_partially() {
    let body = "data: {\"choices\": []}\n\n".repeat(10_000);
    let whole = gzip(body.as_bytes());
    let read = read_one(&content(&whole[..whole.len() / 2])).response.body;
    assert!(!read.is_empty() && body.as_bytes().starts_with(&read), "{} bytes", read.len());
    let invalid = b"\x1f\x8b\x08 is not gzip";
    assert_eq!(read_one(&content(invalid)).response.body, invalid);
}

#[test]
fn decompressed_size_is_bounded() {
    let zeros = gzip(&vec![0; 80 << 20]);
    assert!(zeros.len() < 1 << 20);
    assert_eq!(read_one(&content(&zeros)).response.body.len(), 64 << 20);
}

#[test]
fn lone_surrogate_keeps_body() {
    let one = entry("https://h/v1", json!({"text": "LONE"}), json!({"status": 200}));
    let (entries, ended) = read(har(&[one]).replace("LONE", r"a\ud83dz"));
    assert_eq!((entries.len(), ended), (1, Ok(())));
    let body = &entries[0].request.body;
    assert!(body.starts_with(b"a") && body.ends_with(b"z"), "{body:?}");
}
