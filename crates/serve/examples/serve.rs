//! Runs the server of `paceline serve` inside a program that shares its limiter: HTTP requests and the
//! program's own work count against the same limits.
//!
//! ```sh
//! cargo run -p paceline-serve --example serve
//! curl -i -X POST http://127.0.0.1:8080/rate/user-1
//! ```
//!
//! Clients authenticate with `PACELINE_TOKEN` and `PACELINE_ADMIN_TOKEN`, as with the command.

use paceline::limiter::Limiter;
use paceline::quota::Cost;
use paceline_serve::{Server, Tokens};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (server, limiter) = start(CONFIG, Tokens::from_environment()?).await?;
    println!("listening on http://{}", server.addr());

    // The program's own work queues together with HTTP requests to `/rate/reports`.
    let permit = limiter.acquire("rate/reports", &Cost::new()).await?;
    println!("creating a report");
    drop(permit);

    tokio::signal::ctrl_c().await?;
    server.shutdown().await?;
    Ok(())
}

/// Starts a server, and returns it with its limiter.
pub(crate) async fn start(config: &str, tokens: Tokens) -> Result<(Server, Limiter), Error> {
    let config = paceline_serve::parse(config)?;
    // `paceline_serve::limiter(&config)` also attaches a store, bus and cluster.
    let limiter = config.builder().build()?;
    let server = Server::bind(config, limiter.clone(), tokens).await?;
    Ok((server, limiter))
}

const CONFIG: &str = "
quotas:
  reports: {rpm: 10}
serve:
  listen: 127.0.0.1:8080
  max_requests: 5
  window_millis: 1000
";
