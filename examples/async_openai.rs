//! An async-openai client with the rate-limit layer, installed by `with_http_service`.
//!
//! ```sh
//! cargo run --features reqwest --example async_openai
//! ```
//!
//! No API key is needed: the provider is the built-in simulated one, on this machine. It accepts a burst
//! of 10 requests and 10 more per second. For OpenAI itself, use `OpenAIConfig::new()`.
//!
//! async-openai passes a request factory, so its retry layer can wrap the rate-limit layer, which then
//! charges each attempt. An error of the rate-limit layer is returned as `OpenAIError::Boxed`.

use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::middleware::retry::OpenAIRetryLayer;
use async_openai::types::chat::{
    ChatCompletionRequestUserMessage, CreateChatCompletionRequest, CreateChatCompletionRequestArgs,
};
use futures_util::TryStreamExt;
use futures_util::future::{try_join, try_join_all};
use paceline::limiter::Limiter;
use paceline::middleware::RateLimitLayer;
use paceline::provider::OPENAI;
use paceline::quota::{Dimension, Limit, Quota};
use paceline_simulate::{Settings, SimulatedServer};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = SimulatedServer::bind(provider(), ([127, 0, 0, 1], 0).into()).await?;
    let base = format!("http://{}/v1", server.addr());
    let client = limited_client(limiter()?, reqwest::Client::new(), &base);
    let (tokens, frames) = ask_all(&client).await?;

    let stats = server.shutdown().await?.total;
    println!("{tokens} tokens in JSON, {frames} frames, {} refused (429)", stats.refused);
    Ok(())
}

/// The limits that the provider enforces.
pub(crate) fn provider() -> Settings {
    Settings::default().with_rpm(600).with_burst(Duration::from_secs(1))
}

/// Creates a limiter with the same limits.
pub(crate) fn limiter() -> Result<Limiter, Error> {
    let requests = Limit::per_minute(Dimension::Requests, 600).map(|limit| limit.with_burst(10));
    let quota = Quota::new().limit(requests);
    Ok(Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build()?)
}

/// Creates a rate-limited client of async-openai.
pub(crate) fn limited_client(
    limiter: Limiter,
    http: reqwest::Client,
    base: &str,
) -> Client<OpenAIConfig> {
    let limited = RateLimitLayer::new(limiter).layer(http.clone());
    let attempt = service_fn(move |request: HttpRequestFactory| {
        let limited = limited.clone();
        async move {
            let sent = limited.oneshot(request.build().await?).await;
            sent.map_err(|error| match error.into_inner() {
                Ok(error) => OpenAIError::Reqwest(error),
                Err(limited) => OpenAIError::Boxed(limited.into()),
            })
        }
    });
    let service = ServiceBuilder::new().layer(OpenAIRetryLayer::default()).service(attempt);
    let config = OpenAIConfig::new().with_api_base(base).with_api_key("none");
    Client::build(http, config).with_http_service(service)
}

/// Sends ten requests for JSON and ten for streams concurrently. Returns the total tokens of the former
/// and the total number of frames of the latter.
pub(crate) async fn ask_all(client: &Client<OpenAIConfig>) -> Result<(u32, usize), Error> {
    let answers = (1..=10).map(|number| async move {
        let answer = client.chat().create(question(number)?).await?;
        Ok::<_, OpenAIError>(answer.usage.map_or(0, |usage| usage.total_tokens))
    });
    let streams = (11..=20).map(|number| async move {
        let frames = client.chat().create_stream(question(number)?).await?;
        frames.try_fold(0, |frames, _| async move { Ok(frames + 1) }).await
    });
    let (answers, streams) = try_join(try_join_all(answers), try_join_all(streams)).await?;
    Ok((answers.into_iter().sum(), streams.into_iter().sum()))
}

pub(crate) fn question(number: u32) -> Result<CreateChatCompletionRequest, OpenAIError> {
    let message = ChatCompletionRequestUserMessage::from(format!("Tell me fact no. {number}."));
    CreateChatCompletionRequestArgs::default()
        .model("gpt-4o")
        .max_completion_tokens(100_u32)
        .messages([message.into()])
        .build()
}
