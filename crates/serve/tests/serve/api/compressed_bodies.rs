//! Compressed request bodies.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{ADMIN, Response, Rig, send};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A request with this content encoding.
fn encoded(rig: &Rig, encoding: &str, body: Vec<u8>) -> reqwest::RequestBuilder {
    let request = rig.request("POST", "/v1/reserve").bearer_auth(ADMIN);
    let request = request.header("content-type", "application/json");
    request.header("content-encoding", encoding).body(body)
}

fn reserve(tokens: u64) -> Value {
    json!({"keys": ["a"], "cost": {"tokens": tokens}})
}

#[tokio::test]
async fn compressed_body_equals_uncompressed_form() {
    let rig = Rig::start("quotas: {a: {tpm: 100}}").await;
    let plain = reserve(7).to_string().into_bytes();
    let gzipped = ["gzip", "GZip", "x-gzip"].map(|name| (name, gzip(&plain)));
    for (encoding, body) in gzipped.into_iter().chain([("identity", plain.clone())]) {
        let response = send(encoded(&rig, encoding, body)).await;
        assert_eq!(response.assert_status(201).body["cost"]["tokens"], 7);
    }
    assert_eq!(rig.held("a"), 28);
    // The idempotency key matches the uncompressed request.
    let first = rig.post_with_key("k", "/v1/reserve", reserve(7)).await;
    let again = send(encoded(&rig, "gzip", gzip(&plain)).header("idempotency-key", "k")).await;
    assert_eq!(
        (&again.body, again.header("idempotency-replayed")),
        (&first.assert_status(201).body, "true")
    );
    assert_eq!(rig.held("a"), 35);
}

#[tokio::test]
async fn compressed_body_is_bounded_by_decompressed_size() {
    let rig = Rig::start("").await;
    let long = |bytes: usize| {
        let mut text = reserve(1).to_string();
        text.push_str(&" ".repeat(bytes - text.len()));
        gzip(text.as_bytes())
    };
    send(encoded(&rig, "gzip", long(LONGEST))).await.assert_status(201);
    let bomb = gzip(&vec![b' '; 64 << 20]);
    for body in [long(LONGEST + 1), bomb] {
        assert!(body.len() < LONGEST / 2, "{}", body.len());
        send(encoded(&rig, "gzip", body.clone())).await.assert_problem(413, "body_too_large");
        let keyed = encoded(&rig, "gzip", body).header("idempotency-key", "k");
        send(keyed).await.assert_problem(413, "body_too_large");
    }
    // The size as received is bounded, too.
    let rig = Rig::start("serve: {bounds: {body: 2000}}").await;
    let plain = format!("{}{}", reserve(1), " ".repeat(2_000));
    send(encoded(&rig, "identity", plain.clone().into()))
        .await
        .assert_problem(413, "body_too_large");
    send(encoded(&rig, "gzip", gzip(plain.as_bytes()))).await.assert_status(201);
}

#[tokio::test]
async fn wrong_content_encoding_is_refused() {
    let rig = Rig::start("").await;
    let plain = reserve(1).to_string().into_bytes();
    let whole = gzip(&plain);
    for encoding in ["br", "zstd", "deflate", "gzip, gzip", "other"] {
        let response: Response = send(encoded(&rig, encoding, whole.clone())).await;
        let detail = response.assert_problem(415, "unsupported_encoding");
        assert!(detail.contains("`accept-encoding`"), "{detail}");
        assert_eq!(response.header("accept-encoding"), "gzip");
    }
    for body in [plain, whole[..whole.len() / 2].to_vec()] {
        send(encoded(&rig, "gzip", body)).await.assert_problem(400, "unreadable_body");
    }
    send(encoded(&rig, "gzip", vec![])).await.assert_problem(400, "bad_request");
    // Authorization is checked before the encoding.
    let stranger = rig.request("PUT", "/v1/quotas/a").header("content-encoding", "br");
    send(stranger).await.assert_problem(401, "unauthorized");
    assert_eq!(rig.held("a"), 0);
}

/// In bytes.
const LONGEST: usize = 256 * 1_024;
