//! An evaluation: a stream of concurrent tasks whose rate only the limiter controls.
//!
//! ```sh
//! cargo run --example evaluate
//! ```
//!
//! Sends a thousand examples to a model that allows 600 requests and 60,000 tokens per minute, and grades
//! the answers. The model is the built-in simulated provider and the time is virtual, so that minutes pass
//! immediately. With a real provider only `ask` and the clock change.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use paceline::limiter::{Limiter, TokioClock};
use paceline::provider::OPENAI;
use paceline::quota::{Cost, Quota};
use paceline_simulate::{LimitAlgorithm, Provider, ReplyBody, Settings};
use parking_lot::Mutex;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tokio::time::pause();
    let result = evaluate(1_000, 64).await?;
    println!(
        "{} of {} right after {:.0?}; {} refused (429)",
        result.right, result.requests, result.took, result.refused
    );
    Ok(())
}

/// The result of an evaluation.
#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) requests: u64,
    pub(crate) right: u64,
    pub(crate) refused: u64,
    pub(crate) took: Duration,
}

/// Sends `examples` examples to the model, at most `concurrency` of them concurrently.
pub(crate) async fn evaluate(examples: u64, concurrency: usize) -> Result<Evaluation, Error> {
    let quota = Quota::new().rpm(600).tpm(60_000);
    let limiter = Limiter::builder()
        .provider(OPENAI)
        .quota("gpt-4o", quota)
        .clock(TokioClock::new())
        .build()?;
    let settings = Settings::default().with_rpm(600).with_tpm(60_000);
    let model = Mutex::new(Provider::new(settings.with_algorithm(LimitAlgorithm::TokenBucket)));
    let begin = limiter.now();

    let right = stream::iter(0..examples)
        .map(|example| ask(&limiter, &model, example))
        .buffer_unordered(concurrency)
        .try_fold(0, |right, answer| async move { Ok(right + u64::from(is_right(&answer))) })
        .await?;

    let took = limiter.now() - begin;
    let stats = model.lock().stats().total;
    Ok(Evaluation { requests: stats.received, right, refused: stats.refused, took })
}

/// Runs one task: waits for quota, sends the request, and settles its actual cost.
async fn ask(limiter: &Limiter, model: &Mutex<Provider>, example: u64) -> Result<String, Error> {
    let body = serde_json::json!({
        "model": "gpt-4o",
        "max_tokens": 80,
        "messages": [{"role": "user", "content": format!("What is {example} + {example}?")}],
    });
    let body = body.to_string();
    let cost = OPENAI.read_request("/v1/chat/completions", body.as_bytes()).cost;
    let permit = limiter.acquire("gpt-4o", &cost).await?;

    let now = limiter.now();
    let reply = model.lock().receive(now.as_nanos(), "/v1/chat/completions", body.as_bytes());
    tokio::time::sleep(reply.latency).await;
    permit.settle(&Cost::new().tokens(reply.charged));
    match reply.body {
        ReplyBody::Json(json) if reply.status == 200 => Ok(String::from_utf8(json.into())?),
        _ => Err(format!("status {}", reply.status).into()),
    }
}

/// Returns true if an answer is complete, since the simulated model only generates random words.
fn is_right(answer: &str) -> bool {
    answer.contains(r#""finish_reason":"stop""#)
}
