//! Compression of responses.

use std::io::Read;

use axum::Router;
use axum::routing::get;
use flate2::read::GzDecoder;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use tokio::net::TcpListener;

use super::rig::Rig;

/// A client that does not decompress responses.
fn plain() -> reqwest::Client {
    paceline_testing::http::builder().no_gzip().build().unwrap()
}

/// Starts a server with enough keys for a long response, and an upstream with a long response.
async fn start() -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    let long = Router::new().route("/long", get(async || "long ".repeat(1_000)));
    tokio::spawn(async { axum::serve(listener, long).await });
    let upstreams =
        format!("upstreams: {{up: {{base_url: 'http://{upstream}', provider: openai}}}}");
    let rig = Rig::new(&format!("max_requests: 9, {upstreams}")).await;
    for number in 0..40 {
        rig.post(&format!("/rate/key-{number}")).await;
    }
    rig
}

#[tokio::test]
async fn long_responses_are_compressed_if_accepted() {
    let rig = start().await;
    let client = plain();
    for path in ["/", "/debug", "/openapi.json", "/v1/stats", "/metrics"] {
        let get = || client.get(rig.url(path));
        let response = get().send().await.unwrap();
        assert_eq!(response.headers().get(CONTENT_ENCODING), None, "{path}");
        let whole = response.text().await.unwrap();
        let response = get().header(ACCEPT_ENCODING, "br, gzip").send().await.unwrap();
        assert_eq!(response.headers()[CONTENT_ENCODING], "gzip", "{path}");
        let compressed = response.bytes().await.unwrap();
        let mut read = String::new();
        GzDecoder::new(&compressed[..]).read_to_string(&mut read).unwrap();
        assert!(
            compressed.len() < whole.len() / 2,
            "{path}: {} of {}",
            compressed.len(),
            whole.len()
        );
        // The metrics differ, because they count these requests.
        assert!(read == whole || path == "/metrics", "{path}");
    }
}

#[tokio::test]
async fn short_proxied_and_streamed_responses_are_not_compressed() {
    let rig = start().await;
    let client = plain();
    for path in ["/rate/k", "/healthz", "/v1/stats/key-1", "/up/long", "/live/events"] {
        let request = client.get(rig.url(path)).header(ACCEPT_ENCODING, "gzip");
        let mut response = request.send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers().get(CONTENT_ENCODING)),
            (200, None)
        );
        let first = response.chunk().await.unwrap().unwrap();
        assert!(std::str::from_utf8(&first).is_ok(), "{path}");
    }
}
