//! d05: the layer wraps LLM HTTP clients. Runs `examples/hyper_client.rs` and
//! `examples/async_openai.rs`. The tests of the layer run `examples/reqwest_client.rs`.
#![cfg(feature = "reqwest")]

use async_openai::error::OpenAIError;
use paceline::limiter::{AcquireError, Code, Limiter};
use paceline::middleware::find_refusal;
use paceline::provider::{COMPATIBLE_USAGE, OPENAI};
use paceline::quota::Quota;
use paceline_simulate::{OutputSize, Settings, SimulatedServer};

#[path = "../../../examples/async_openai.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod async_openai_client;
#[path = "../../../examples/hyper_client.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod hyper_client;

async fn bind(settings: Settings) -> (SimulatedServer, String) {
    let server = SimulatedServer::bind(settings, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let base = format!("http://{}/v1", server.addr());
    (server, base)
}

/// Returns the numbers of admitted and refused requests.
async fn end(server: SimulatedServer) -> (u64, u64) {
    let total = server.shutdown().await.unwrap().total;
    (total.admitted, total.refused)
}

#[tokio::test]
async fn d05_hyper_util_client_receives_no_429() {
    let (server, base) = bind(hyper_client::provider()).await;
    let bytes = hyper_client::send_all(&format!("{base}/chat/completions")).await.unwrap();
    assert!(bytes > 20 * 100);
    assert_eq!(end(server).await, (20, 0));
}

#[tokio::test]
async fn d05_async_openai_receives_no_429_with_json_and_streams() {
    let (server, base) = bind(async_openai_client::provider()).await;
    let limiter = async_openai_client::limiter().unwrap();
    let client = async_openai_client::limited_client(limiter, super::reqwest_client(), &base);
    let (tokens, frames) = async_openai_client::ask_all(&client).await.unwrap();
    assert!(tokens > 10 * 10 && frames > 10 * 10, "{tokens} tokens, {frames} frames");
    drop(client);
    assert_eq!(end(server).await, (20, 0));
}

#[tokio::test]
async fn d05_async_openai_stream_settles_by_usage() {
    use futures_util::TryStreamExt;
    let (_server, base) = bind(Settings::default().with_output(OutputSize::Fixed(9))).await;
    let quota = Quota::new().tpm(10_000);
    let limiter = Limiter::builder().provider(COMPATIBLE_USAGE).quota("gpt-4o", quota);
    let limiter = limiter.build().unwrap();
    let client =
        async_openai_client::limited_client(limiter.clone(), super::reqwest_client(), &base);
    let mut question = async_openai_client::question(1).unwrap();
    question.stream_options = Some(async_openai::types::chat::ChatCompletionStreamOptions {
        include_usage: Some(true),
        include_obfuscation: None,
    });
    let frames = client.chat().create_stream(question).await.unwrap();
    assert!(limiter.stats("gpt-4o").limits[0].held >= 100);
    let frames: Vec<_> = frames.try_collect().await.unwrap();
    let total = frames.last().unwrap().usage.as_ref().unwrap().total_tokens;
    let tpm = limiter.stats("gpt-4o").limits[0].clone();
    assert_eq!((tpm.held, tpm.available), (0, 10_000 - u64::from(total)));
}

#[tokio::test]
async fn d05_refusal_keeps_error_type_through_async_openai() {
    let (server, base) = bind(Settings::default()).await;
    let quota = Quota::new().tpm(100);
    let limiter = Limiter::builder().provider(OPENAI).quota("gpt-4o", quota).build().unwrap();
    let client = async_openai_client::limited_client(limiter, super::reqwest_client(), &base);
    let question = async_openai_client::question(1).unwrap();
    let error = client.chat().create(question).await.unwrap_err();
    assert!(matches!(error, OpenAIError::Boxed(_)), "{error:?}");
    let refusal = find_refusal(&error).and_then(AcquireError::refused).unwrap();
    assert_eq!((refusal.code, refusal.key.as_str()), (Code::ExceedsCapacity, "gpt-4o"));
    drop(client);
    assert_eq!(end(server).await, (0, 0));
}
