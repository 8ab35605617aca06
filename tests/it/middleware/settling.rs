//! Final charges of requests.

use http::{Request, Response};
use http_body_util::BodyExt;
use paceline::limiter::Limiter;
use paceline::middleware::{Ask, RateLimitLayer};
use paceline::provider::{ANTHROPIC, COMPATIBLE, COMPATIBLE_USAGE, GEMINI, OPENAI, Profile};
use paceline::quota::{Algorithm, Cost, Quota};

use super::inner::Frames;
use super::{USAGE, available, builder, chat, client_returning, held, read, send};

/// Returns a limiter of 1,000 tokens per minute for `gpt-4o`.
fn limiter_of_1000(profile: Profile) -> Limiter {
    let quota = Quota::new().tpm(1_000);
    builder().provider(profile).quota("gpt-4o", quota).build().unwrap()
}

/// Returns the remaining tokens of 1,000 before and after the body of the response is read.
async fn left(
    profile: Profile,
    answer: impl Fn() -> Response<Frames> + Send + Sync + 'static,
) -> (u64, u64) {
    let limiter = limiter_of_1000(profile);
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), answer);
    let response = send(&mut client, chat("gpt-4o")).await;
    let before = available(&limiter, "gpt-4o")[0];
    let _ = read(response).await;
    assert_eq!(held(&limiter, "gpt-4o"), [0]);
    (before, available(&limiter, "gpt-4o")[0])
}

fn sse() -> Response<Frames> {
    let events = format!(
        "data: {{\"choices\": [{{\"delta\": {{\"content\": \"Hi\"}}}}], \"usage\": null}}\n\n\
         data: {USAGE}\n\ndata: [DONE]\n\n"
    );
    // One frame per byte.
    let frames = events.bytes().fold(Frames::default(), |frames, byte| frames.data(vec![byte]));
    let mut response = frames.into_response();
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

/// The reservation for [`chat`] at OpenAI: bytes / 4, one for the message, one for the request, and
/// `max_tokens`.
const AT_OPENAI: u64 = 5 + 1 + 1 + 50;

#[tokio::test(start_paused = true)]
async fn usage_settles_where_provider_charges_usage() {
    let json = || Frames::from(USAGE).into_response();
    for (before, after) in [left(COMPATIBLE_USAGE, json).await, left(COMPATIBLE_USAGE, sse).await] {
        assert!(before <= 1_000 - AT_OPENAI, "{before} left");
        assert_eq!(after, 1_000 - 21);
    }
}

#[tokio::test(start_paused = true)]
async fn usage_is_ignored_where_provider_charges_admission() {
    let json = || Frames::from(USAGE).into_response();
    for (before, after) in [left(OPENAI, json).await, left(OPENAI, sse).await] {
        assert_eq!((before, after), (1_000 - AT_OPENAI, 1_000 - AT_OPENAI));
    }
}

/// The counting of an unknown provider isn't known; the larger charge is safe under both rules.
#[tokio::test(start_paused = true)]
async fn unknown_provider_is_charged_larger_of_estimate_and_usage() {
    let little = || Frames::from(USAGE).into_response();
    assert_eq!(left(COMPATIBLE, little).await.1, 1_000 - AT_OPENAI);
    let much = r#"{"usage": {"prompt_tokens": 12, "completion_tokens": 900}}"#;
    let much = move || Frames::from(much).into_response();
    assert_eq!(left(COMPATIBLE, much).await.1, 1_000 - 912);
}

#[tokio::test(start_paused = true)]
async fn usage_above_reservation_becomes_debt() {
    let json = r#"{"usage": {"prompt_tokens": 12, "completion_tokens": 900}}"#;
    let (_, after) = left(COMPATIBLE_USAGE, move || Frames::from(json).into_response()).await;
    assert_eq!(after, 1_000 - 912);
}

#[tokio::test(start_paused = true)]
async fn compressed_body_is_not_read_and_keeps_reservation() {
    for (encoding, is_read) in [("gzip", false), ("br", false), ("identity", true)] {
        let (before, after) = left(COMPATIBLE_USAGE, move || {
            let mut response = Frames::from(USAGE).into_response();
            response.headers_mut().insert("content-encoding", encoding.parse().unwrap());
            response
        })
        .await;
        assert_eq!(after == 1_000 - 21, is_read, "{encoding}");
        assert_eq!(after == before, !is_read, "{encoding}");
    }
}

#[tokio::test(start_paused = true)]
async fn truncated_body_keeps_reservation() {
    let cut = &USAGE[..USAGE.len() - 4];
    let (before, after) =
        left(COMPATIBLE_USAGE, move || Frames::from(cut).error().into_response()).await;
    assert_eq!(before, after);
    let (before, after) = left(COMPATIBLE_USAGE, || Frames::from("no JSON").into_response()).await;
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn usage_read_before_body_error_settles() {
    let (_, after) = left(COMPATIBLE_USAGE, || Frames::from(USAGE).error().into_response()).await;
    assert_eq!(after, 1_000 - 21);
}

#[tokio::test(start_paused = true)]
async fn error_status_keeps_charge_despite_usage_in_body() {
    let (before, after) = left(COMPATIBLE_USAGE, || {
        let mut response = Frames::from(USAGE).into_response();
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
    .await;
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn each_endpoint_is_estimated_by_provider_rules() {
    let cases = [
        ("/v1/chat/completions", r#""messages": [{"role": "user", "content": "12345678"}]"#, 4),
        ("/v1/completions", r#""prompt": "12345678", "max_tokens": 7"#, 9),
        ("/v1/embeddings", r#""input": ["1234", "5678"]"#, 2),
    ];
    for (path, fields, charge) in cases {
        let limiter = limiter_of_1000(OPENAI);
        let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || {
            Frames::from(USAGE).into_response()
        });
        let body = format!(r#"{{"model": "gpt-4o", {fields}}}"#);
        let request = Request::post(format!("https://api.openai.com{path}?x=y")).body(body);
        read(send(&mut client, request.unwrap()).await).await.unwrap();
        assert_eq!(1_000 - available(&limiter, "gpt-4o")[0], charge, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn responses_api_usage_settles() {
    let limiter = limiter_of_1000(COMPATIBLE_USAGE);
    let body = r#"{"object": "response", "usage": {"input_tokens": 30, "output_tokens": 4}}"#;
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), move || {
        Frames::from(body).into_response()
    });
    let request = r#"{"model": "gpt-4o", "input": "Hello", "max_output_tokens": 60}"#;
    let request = Request::post("/v1/responses").body(request.to_owned()).unwrap();
    let response = send(&mut client, request).await;
    assert!(available(&limiter, "gpt-4o")[0] <= 1_000 - 60);
    read(response).await.unwrap();
    assert_eq!(available(&limiter, "gpt-4o"), [1_000 - 34]);
}

/// Returns a stream of these events, one per frame.
fn events(events: &[&str]) -> Response<Frames> {
    let event = |frames: Frames, event: &&str| frames.data(format!("data: {event}\n\n"));
    let mut response = events.iter().fold(Frames::default(), event).into_response();
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

const MESSAGE_START: &str =
    r#"{"type": "message_start", "message": {"usage": {"input_tokens": 12, "output_tokens": 1}}}"#;
const DELTA: &str = r#"{"type": "content_block_delta", "delta": {"text": "Hello there"}}"#;
const MESSAGE_DELTA: &str = r#"{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 30}}"#;
const MESSAGE_STOP: &str = r#"{"type": "message_stop"}"#;
const ANSWER: &[&str] = &[MESSAGE_START, DELTA, MESSAGE_DELTA, MESSAGE_STOP];

/// Returns a limiter with 10,000 output tokens per minute for `m`.
fn otpm(profile: Profile) -> Limiter {
    let quota = Quota::new().otpm(10_000).with_algorithm(Algorithm::TokenBucket);
    builder().provider(profile).quota("m", quota).build().unwrap()
}

/// Returns the output charged if `frames` frames of a stream are read before it is dropped.
async fn charged(
    limiter: &Limiter,
    path: &str,
    stream: &'static [&'static str],
    frames: usize,
) -> u64 {
    let before = available(limiter, "m")[0];
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || events(stream));
    let request = r#"{"model": "m", "max_tokens": 1000, "messages": []}"#;
    let request = Request::post(path).body(request.to_owned()).unwrap();
    let mut body = send(&mut client, request).await.into_body();
    for _ in 0..frames {
        let _ = body.frame().await;
    }
    drop(body);
    assert_eq!(held(limiter, "m"), [0]);
    before - available(limiter, "m")[0]
}

#[tokio::test(start_paused = true)]
async fn stream_dropped_early_keeps_output_and_is_not_learned() {
    let limiter = otpm(ANTHROPIC);
    for frames in [1, 1, 1, 2, 2, 2] {
        assert_eq!(charged(&limiter, "/v1/messages", ANSWER, frames).await, 1_000);
    }
    assert_eq!(limiter.feedback().expected_output("m"), None);
    // A stream that is read to its end settles by usage.
    assert_eq!(charged(&limiter, "/v1/messages", ANSWER, ANSWER.len() + 1).await, 30);
}

#[tokio::test(start_paused = true)]
async fn stream_dropped_after_final_usage_settles_by_usage() {
    let limiter = otpm(ANTHROPIC);
    for _ in 0..5 {
        assert_eq!(charged(&limiter, "/v1/messages", ANSWER, 3).await, 30);
    }
    assert_eq!(limiter.feedback().expected_output("m"), Some(30));
    let limiter = otpm(COMPATIBLE_USAGE);
    let stream =
        &[r#"{"choices": [{"delta": {"content": "Hi"}}], "usage": null}"#, USAGE, "[DONE]"];
    for frames in [2, 3] {
        assert_eq!(charged(&limiter, "/v1/chat/completions", stream, frames).await, 9);
    }
}

#[tokio::test(start_paused = true)]
async fn error_in_stream_keeps_reserved_output() {
    const BROKEN: &[&str] = &[
        MESSAGE_START,
        r#"{"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}"#,
    ];
    assert_eq!(charged(&otpm(ANTHROPIC), "/v1/messages", BROKEN, 3).await, 1_000);
}

#[tokio::test(start_paused = true)]
async fn cumulative_usage_settles_only_at_end_of_stream() {
    const VLLM: &[&str] = &[
        r#"{"choices": [{}], "usage": {"prompt_tokens": 12, "completion_tokens": 0}}"#,
        r#"{"choices": [{}], "usage": {"prompt_tokens": 12, "completion_tokens": 1}}"#,
        r#"{"choices": [{}], "usage": {"prompt_tokens": 12, "completion_tokens": 2}}"#,
        "[DONE]",
    ];
    let path = "/v1/chat/completions";
    for (frames, charge) in [(1, 1_000), (2, 1_000), (3, 1_000), (5, 2)] {
        assert_eq!(charged(&otpm(COMPATIBLE_USAGE), path, VLLM, frames).await, charge, "{frames}");
    }
    const CHUNKS: &[&str] = &[
        r#"{"usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15}}"#,
        r#"{"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19}}"#,
    ];
    let path = "/v1beta/models/m:streamGenerateContent";
    for (frames, charge) in [(1, 1_000), (2, 1_000), (3, 7)] {
        assert_eq!(charged(&otpm(GEMINI), path, CHUNKS, frames).await, charge, "{frames}");
    }
}

#[tokio::test(start_paused = true)]
async fn stream_cut_off_keeps_cost_without_output() {
    let limiter = limiter_of_1000(ANTHROPIC);
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || events(ANSWER));
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(Ask::new().cost(Cost::new().tokens(600)));
    let mut body = send(&mut client, request).await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(available(&limiter, "gpt-4o"), [400]);
}
