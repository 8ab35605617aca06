//! Twenty concurrent chat requests within the limits of an account, without 429 responses and without
//! needless waits.
//!
//! ```sh
//! cargo run --features reqwest --example reqwest_client
//! ```
//!
//! No API key is needed: the provider is the built-in simulated one, on this machine, with the limits of
//! OpenAI's first tier for gpt-4o (500 requests and 30,000 tokens per minute). The requests need 30,140
//! tokens, so the last one waits a little. For OpenAI itself only the URL and a header change.

use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use paceline::provider::OPENAI;
use paceline_simulate::{Settings, SimulatedServer};
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let provider = Settings::default().with_rpm(500).with_tpm(30_000);
    let provider = SimulatedServer::bind(provider, ([127, 0, 0, 1], 0).into()).await?;
    let url = format!("http://{}/v1/chat/completions", provider.addr());

    send_all(reqwest::Client::new(), &url).await?;

    let stats = provider.shutdown().await?.total;
    println!("{} answers, {} refused (429)", stats.admitted, stats.refused);
    Ok(())
}

/// Sends twenty requests, each as soon as the limits allow, and prints their usage.
pub(crate) async fn send_all(client: reqwest::Client, url: &str) -> Result<(), Error> {
    // The profile contains the limits of gpt-4o; `.quota("gpt-4o", ...)` overrides them.
    let limiter = Limiter::builder().provider(OPENAI).build()?;
    let client = RateLimitLayer::new(limiter).layer(client);

    let mut answers = JoinSet::new();
    for number in 1..=20 {
        let body = serde_json::json!({
            "model": "gpt-4o",
            "max_tokens": 1_500,
            "messages": [{"role": "user", "content": format!("Tell me fact no. {number:02}.")}],
        });
        let mut request = reqwest::Request::new(reqwest::Method::POST, url.parse()?);
        *request.body_mut() = Some(body.to_string().into());
        answers.spawn(client.clone().oneshot(request));
    }
    while let Some(answer) = answers.join_next().await {
        let answer = answer??.error_for_status()?.bytes().await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        let usage = &answer["usage"];
        println!("{} tokens in, {} out", usage["prompt_tokens"], usage["completion_tokens"]);
    }
    Ok(())
}
