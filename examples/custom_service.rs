//! The layer around a service that isn't HTTP, with closures that classify requests and read charges from
//! responses.
//!
//! ```sh
//! cargo run --example custom_service
//! ```
//!
//! The service embeds texts on a machine that accepts 100 words per second, in bursts of up to 200. Each
//! team has a separate limit. A request reserves all of its words, and is finally charged for those that
//! weren't in the machine's cache.

use std::convert::Infallible;

use paceline::limiter::Limiter;
use paceline::middleware::{Classified, RateLimitError, RateLimitLayer};
use paceline::quota::{Cost, Dimension, Limit, Quota};
use tower::{Layer, Service, ServiceExt, service_fn};

#[derive(Debug, Clone)]
pub(crate) struct Embed {
    pub(crate) team: &'static str,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) vector: Vec<f32>,
    pub(crate) words_charged: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::builder().quota("team:*", quota()).build()?;
    let mut machine = machine(&limiter);
    let begin = limiter.now();
    for text in ["a text of six words only", &"word ".repeat(190), &"more ".repeat(50)] {
        let request = Embed { team: "blue", text: text.to_owned() };
        let embedded = machine.ready().await?.call(request).await?;
        let after = limiter.now() - begin;
        println!(
            "{} words, {} floats, after {after:.1?}",
            embedded.words_charged,
            embedded.vector.len()
        );
    }
    Ok(())
}

/// Returns a quota of 100 words per second, in bursts of up to 200.
pub(crate) fn quota() -> Quota {
    let words = Limit::per_second(Dimension::custom("words"), 100);
    Quota::new().limit(words.map(|limit| limit.with_burst(200)))
}

/// Returns the machine with the limits of each team.
pub(crate) fn machine(
    limiter: &Limiter,
) -> impl Service<Embed, Response = Embedded, Error = RateLimitError> {
    let classify = |request: &Embed| {
        let words = request.text.split_whitespace().count() as u64;
        let key = format!("team:{}", request.team);
        Classified::new(key, Cost::new().custom("words", words))
    };
    let observe = |response: &Embedded| Some(Cost::new().custom("words", response.words_charged));
    let layer = RateLimitLayer::new(limiter.clone()).classify(classify).observe(observe);
    layer.layer(service_fn(embed))
}

/// Simulates the machine, which has half of each text of more than 100 words in its cache.
async fn embed(request: Embed) -> Result<Embedded, Infallible> {
    let words = request.text.split_whitespace().count() as u64;
    let words_charged = if words > 100 { words / 2 } else { words };
    let vector = request.text.split_whitespace().map(|word| word.len() as f32).collect();
    Ok(Embedded { vector, words_charged })
}
