//! async-openai within the limits: its client, with the layer behind `with_http_service`.
//!
//! ```sh
//! cargo run --features reqwest --example async_openai
//! ```
//!
//! It needs no key: the provider is the built-in one, on this machine, which takes 10 requests at
//! once and 10 more each second. Against OpenAI itself the configuration is `OpenAIConfig::new()`.
//!
//! async-openai hands over a factory of requests, so that its retry layer can go around ours: each
//! attempt is then charged. An error of ours comes back as `OpenAIError::Boxed`.

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
use tollgate::limiter::Limiter;
use tollgate::middleware::RateLimitLayer;
use tollgate::provider::OPENAI;
use tollgate::quota::{Dimension, Limit, Quota};
use tollgate_simulate::{Settings, SimulatedServer};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = SimulatedServer::bind(provider(), ([127, 0, 0, 1], 0).into()).await?;
    let base = format!("http://{}/v1", server.addr());
    let client = within(limiter()?, reqwest::Client::new(), &base);
    let (tokens, frames) = ask_all(&client).await?;

    let stats = server.shutdown().await?.total;
    println!("{tokens} tokens in JSON, {frames} frames, {} times 429", stats.refused);
    Ok(())
}

/// What the provider enforces.
pub(crate) fn provider() -> Settings {
    Settings::default().with_rpm(600).with_burst(Duration::from_secs(1))
}

/// The same, to keep within.
pub(crate) fn limiter() -> Result<Limiter, Error> {
    let requests = Limit::per_minute(Dimension::Requests, 600).map(|limit| limit.with_burst(10));
    let quota = Quota::new().limit(requests);
    Ok(Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build()?)
}

/// A client of async-openai that keeps to its limits.
pub(crate) fn within(limiter: Limiter, http: reqwest::Client, base: &str) -> Client<OpenAIConfig> {
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

/// Ten answers as JSON and ten as streams, all at once: the tokens of the ones, and how many frames
/// the others had.
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
