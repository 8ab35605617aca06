//! A service that lets each client in five times a minute, and answers everybody else itself.
//!
//! ```sh
//! cargo run --features axum --example axum_server
//! for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:3000/; done
//! ```
//!
//! The sixth is told `429 Too Many Requests`, with `Retry-After`, `RateLimit`, `RateLimit-Policy` and
//! a JSON body. A client is an address here; `Scope::header(HeaderName::from_static("x-api-key"))`
//! makes it an API key, of which neither logs nor answers show anything.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tollgate::RateLimitLayer;
use tollgate::engine::Margin;
use tollgate::limiter::{BuildError, Limiter};
use tollgate::middleware::respond::Scope;
use tollgate::quota::Quota;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let app = app(Scope::peer())?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// The service: five requests a minute for each client, by whatever scope tells clients apart.
pub(crate) fn app(client: Scope) -> Result<Router, BuildError> {
    let limiter = Limiter::builder()
        .quota("peer:*", Quota::new().rpm(5))
        .quota("x-api-key:*", Quota::new().rpm(5).tpm(10_000))
        // What guards the limit itself has no way to it that would need room.
        .margin(Margin::NONE)
        .build()?;
    let limit = RateLimitLayer::new(limiter).respond().scope(client);
    Ok(Router::new().route("/", get(async || "Hello, world!")).layer(limit))
}
