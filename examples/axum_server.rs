//! A service that admits five requests and ten thousand tokens per minute from each client, and answers
//! further requests with status 429.
//!
//! ```sh
//! cargo run --features axum --example axum_server
//! for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:3000/; done
//! curl -i http://127.0.0.1:3000/summary --data-binary @Cargo.lock      # more tokens than the limit
//! ```
//!
//! The response to the sixth request is `429 Too Many Requests`, with `Retry-After`, `RateLimit`,
//! `RateLimit-Policy` and a JSON body. Clients are identified by address here, or by API key with
//! `Scope::header(HeaderName::from_static("x-api-key"))`, which appears in neither logs nor responses.
//!
//! The cost of `/summary` depends on the lengths of its texts. The maximum is reserved before the handler
//! runs, and the handler returns the actual cost.

use std::net::SocketAddr;

use axum::http::header::CONTENT_LENGTH;
use axum::routing::{get, post};
use axum::{Extension, Router};
use paceline::RateLimitLayer;
use paceline::limiter::{BuildError, Limiter};
use paceline::middleware::ActualCost;
use paceline::middleware::respond::{Head, Scope};
use paceline::quota::{Cost, Margin, Quota};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let app = app(Scope::peer())?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// Creates the service with five requests and ten thousand tokens per minute for each client, as
/// identified by `client`.
pub(crate) fn app(client: Scope) -> Result<Router, BuildError> {
    let each = Quota::new().rpm(5).tpm(10_000);
    let limiter = Limiter::builder()
        .quota("peer:*", each.clone())
        .quota("x-api-key:*", each)
        // No margin is needed, since the limit is enforced here.
        .margin(Margin::NONE)
        .build()?;
    let limit = RateLimitLayer::new(limiter).respond().scope(client).cost(cost);
    Ok(Router::new()
        .route("/", get(async || "Hello, world!"))
        .route("/summary", post(summary))
        .layer(limit))
}

/// Returns the maximum cost of a request by its head: the length of its text, if stated, and the longest
/// summary.
fn cost(head: Head<'_>) -> Cost {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(LONGEST_TEXT);
    match head.uri.path() {
        "/summary" => Cost::new().tokens(tokens(length) + tokens(LONGEST_SUMMARY)),
        _ => Cost::new(),
    }
}

/// Returns the first sentence of a text and the actual cost.
async fn summary(text: String) -> (Extension<ActualCost>, String) {
    let end = text.find('.').map_or(text.len(), |stop| stop + 1);
    let summary: String = text[..end].chars().take(LONGEST_SUMMARY as usize).collect();
    let used = tokens(text.len() as u64) + tokens(summary.len() as u64);
    (Extension(ActualCost::of(Cost::new().tokens(used))), summary)
}

/// Estimates the number of tokens, at four characters each.
fn tokens(characters: u64) -> u64 {
    characters.div_ceil(4)
}

/// The default body limit of axum in bytes (2 MB).
const LONGEST_TEXT: u64 = 2_097_152;
const LONGEST_SUMMARY: u64 = 4_000;
