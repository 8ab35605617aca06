//! A service that lets each client in five times a minute, for at most ten thousand tokens, and answers
//! everybody else itself.
//!
//! ```sh
//! cargo run --features axum --example axum_server
//! for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:3000/; done
//! curl -i http://127.0.0.1:3000/summary --data-binary @Cargo.lock      # more tokens than there are
//! ```
//!
//! The sixth is told `429 Too Many Requests`, with `Retry-After`, `RateLimit`, `RateLimit-Policy` and
//! a JSON body. A client is an address here; `Scope::header(HeaderName::from_static("x-api-key"))`
//! makes it an API key, of which neither logs nor answers show anything.
//!
//! `/summary` costs what its texts are long: the most that it could be is taken before the handler runs,
//! and the handler says what it was.

use std::net::SocketAddr;

use axum::http::header::CONTENT_LENGTH;
use axum::routing::{get, post};
use axum::{Extension, Router};
use tollgate::RateLimitLayer;
use tollgate::limiter::{BuildError, Limiter};
use tollgate::middleware::Charge;
use tollgate::middleware::respond::{Head, Scope};
use tollgate::quota::{Cost, Margin, Quota};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let app = app(Scope::peer())?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// The service: five requests and ten thousand tokens a minute for each client, by whatever scope tells
/// clients apart.
pub(crate) fn app(client: Scope) -> Result<Router, BuildError> {
    let each = Quota::new().rpm(5).tpm(10_000);
    let limiter = Limiter::builder()
        .quota("peer:*", each.clone())
        .quota("x-api-key:*", each)
        // What guards the limit itself has no way to it that would need room.
        .margin(Margin::NONE)
        .build()?;
    let limit = RateLimitLayer::new(limiter).respond().scope(client).cost(cost);
    Ok(Router::new()
        .route("/", get(async || "Hello, world!"))
        .route("/summary", post(summary))
        .layer(limit))
}

/// What a request takes at most, told by its head alone: the text that it brings, where it says how long
/// that is, and the longest summary.
fn cost(head: Head<'_>) -> Cost {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(LONGEST_TEXT);
    match head.uri.path() {
        "/summary" => Cost::new().tokens(tokens(length) + tokens(LONGEST_SUMMARY)),
        _ => Cost::new(),
    }
}

/// The first sentence, and what it really took.
async fn summary(text: String) -> (Extension<Charge>, String) {
    let end = text.find('.').map_or(text.len(), |stop| stop + 1);
    let summary: String = text[..end].chars().take(LONGEST_SUMMARY as usize).collect();
    let took = tokens(text.len() as u64) + tokens(summary.len() as u64);
    (Extension(Charge::of(Cost::new().tokens(took))), summary)
}

/// About four characters are a token.
fn tokens(characters: u64) -> u64 {
    characters.div_ceil(4)
}

/// In bytes: what axum takes of a body, unless it is told otherwise (2 MB).
const LONGEST_TEXT: u64 = 2_097_152;
const LONGEST_SUMMARY: u64 = 4_000;
