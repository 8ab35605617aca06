//! The server of `tollgate serve` inside a program of one's own, which shares its limiter: what others
//! ask over HTTP and what the program does itself count against the same limits.
//!
//! ```sh
//! cargo run -p tollgate-serve --example serve
//! curl -i -X POST http://127.0.0.1:8080/rate/anybody
//! ```
//!
//! Who may ask is told by `TOLLGATE_TOKEN` and `TOLLGATE_ADMIN_TOKEN`, as with the command.

use tollgate::limiter::Limiter;
use tollgate::quota::Cost;
use tollgate_serve::{Server, Tokens};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (server, limiter) = start(CONFIG, Tokens::from_environment()).await?;
    println!("listening on http://{}", server.addr());

    // The program's own work waits its turn among everybody else's.
    let permit = limiter.acquire("reports", &Cost::new()).await?;
    println!("a report is made");
    drop(permit);

    tokio::signal::ctrl_c().await?;
    server.shutdown().await?;
    Ok(())
}

/// A server, and the limiter that it asks.
pub(crate) async fn start(config: &str, tokens: Tokens) -> Result<(Server, Limiter), Error> {
    let config = tollgate_serve::parse(config)?;
    // `tollgate_serve::limiter(&config)` besides attaches its store, bus and cluster.
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
