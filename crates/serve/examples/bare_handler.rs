//! A baseline for benchmarks of `paceline serve`: an axum handler that only reads the key.
//!
//! Prints its address; `crates/cli/benches/serve.sh` starts it.

use axum::Router;
use axum::extract::Path;
use axum::routing::post;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new().route("/rate/{key}", post(async |Path(key): Path<String>| key));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await
}
