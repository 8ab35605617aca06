//! Effects of a response's headers, usage and encoding on the limiter.

use std::io;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use paceline::limiter::Limiter;
use paceline::middleware::{Classify, Http, Journey, RateLimitLayer};
use paceline::provider::{ANTHROPIC, COMPATIBLE_USAGE, Profile};
use paceline::quota::{Algorithm, Cost, Dimension, Quota};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::decompression::DecompressionLayer;

use super::inner::Frames;
use super::{USAGE, available, builder, chat, client_returning, held, read, send};

fn limiter(profile: Profile) -> Limiter {
    let quota = Quota::new().tpm(100_000).with_algorithm(Algorithm::TokenBucket);
    builder().provider(profile).quota("gpt-4o", quota).build().unwrap()
}

async fn reserved(layer: &RateLimitLayer, answer: &'static str) -> u64 {
    let mut client = client_returning(layer, move || Frames::from(answer).into_response());
    let journey = Journey::new();
    let mut request = Request::post("/v1/chat/completions")
        .body(r#"{"model": "gpt-4o", "messages": []}"#.to_owned())
        .unwrap();
    request.extensions_mut().insert(journey.clone());
    let response = send(&mut client, request).await;
    read(response).await.unwrap();
    journey.facts().reserved.unwrap().amount(&Dimension::OutputTokens)
}

#[tokio::test(start_paused = true)]
async fn expected_output_of_key_is_reserved_for_next_request() {
    let limiter = limiter(COMPATIBLE_USAGE);
    let layer = RateLimitLayer::new(limiter.clone());
    assert_eq!(reserved(&layer, USAGE).await, 1_024);
    for _ in 0..8 {
        reserved(&layer, USAGE).await;
    }
    assert_eq!(limiter.feedback().expected_output("gpt-4o"), Some(9));
    assert_eq!(reserved(&layer, USAGE).await, 9);
    // A failed request has no output and does not change the expected output.
    reserved(&layer, "{}").await;
    assert_eq!(reserved(&layer, USAGE).await, 9);
}

#[tokio::test(start_paused = true)]
async fn cost_set_by_caller_ignores_expected_output() {
    let limiter = limiter(COMPATIBLE_USAGE);
    (0..9).for_each(|_| limiter.feedback().output_seen("gpt-4o", 9));
    let http = Http::new(COMPATIBLE_USAGE);
    let layer = RateLimitLayer::new(limiter.clone()).classify(move |request: &Request<String>| {
        http.classify(request, None).with_cost(Cost::new().tokens(1_200).output_tokens(700))
    });
    let inner = service_fn(|_| async { Ok::<_, io::Error>(Response::new(Full::from(USAGE))) });
    let journey = Journey::new();
    let _response = layer.layer(inner).oneshot(with(&journey)).await.unwrap();
    let reserved = journey.facts().reserved.unwrap();
    assert_eq!(reserved.amount(&Dimension::OutputTokens), 700);
    assert_eq!(reserved.amount(&Dimension::Tokens), 1_200);
}

#[tokio::test(start_paused = true)]
async fn charge_in_response_header_settles() {
    let mistral = Profile::named("mistral").unwrap();
    let limiter = limiter(mistral);
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || {
        let mut response = Frames::from("{}").into_response();
        let cost = HeaderValue::from_static("777");
        response.headers_mut().insert("x-ratelimit-tokens-query-cost", cost);
        response
    });
    read(send(&mut client, chat("gpt-4o")).await).await.unwrap();
    assert_eq!(available(&limiter, "gpt-4o"), [100_000 - 777]);
}

/// Encodes a text as gzip in one stored block (RFC 1951).
pub(super) fn gzip(text: &str) -> Vec<u8> {
    let size = u16::try_from(text.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(size.to_le_bytes());
    packed.extend((!size).to_le_bytes());
    packed.extend(text.as_bytes());
    let crc = text.bytes().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg()))
    });
    packed.extend((!crc).to_le_bytes());
    packed.extend(u32::from(size).to_le_bytes());
    packed
}

async fn packed(_: Request<String>) -> Result<Response<Full<Bytes>>, io::Error> {
    let mut response = Response::new(Full::from(gzip(USAGE)));
    let headers: HeaderMap =
        [(http::header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))].into_iter().collect();
    *response.headers_mut() = headers;
    Ok(response)
}

fn with(journey: &Journey) -> Request<String> {
    let mut request = chat("gpt-4o");
    request.extensions_mut().insert(journey.clone());
    request
}

#[tokio::test(start_paused = true)]
async fn compressed_response_passes_unchanged_and_is_reported() {
    let layer = RateLimitLayer::new(limiter(COMPATIBLE_USAGE));
    let journey = Journey::new();
    let response = layer.layer(service_fn(packed)).oneshot(with(&journey)).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), gzip(USAGE));
    let facts = journey.facts();
    assert_eq!((facts.unread.as_deref(), facts.usage), (Some("gzip"), None));
    assert_eq!(facts.charged, facts.reserved);
}

#[tokio::test(start_paused = true)]
async fn response_decompressed_inside_layer_is_read() {
    let client = ServiceBuilder::new()
        .layer(RateLimitLayer::new(limiter(COMPATIBLE_USAGE)))
        .map_response(|response: Response<_>| response.map(UnsyncBoxBody::new))
        .layer(DecompressionLayer::new())
        .service_fn(packed);
    let journey = Journey::new();
    let response = client.oneshot(with(&journey)).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text, USAGE);
    let facts = journey.facts();
    assert_eq!((facts.unread, facts.usage.map(|usage| usage.output)), (None, Some(9)));
}

/// A gateway may mark the prompt, and some providers keep any.
#[tokio::test(start_paused = true)]
async fn prompt_above_limit_is_sent_where_answers_show_cache_reads() {
    let quota = Quota::new().itpm(1_000);
    let limiter = builder().provider(ANTHROPIC).quota("gpt-4o", quota).build().unwrap();
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || {
        let usage = r#"{"type": "message", "usage": {"input_tokens": 20, "cache_read_input_tokens": 5000,
            "output_tokens": 1}}"#;
        Frames::default().data(usage).into_response()
    });
    let long = || {
        let text = "word ".repeat(8_000);
        let mut request = chat("gpt-4o");
        *request.body_mut() = format!(
            r#"{{"model": "gpt-4o", "max_tokens": 5, "messages": [{{"role": "user", "content": "{text}"}}]}}"#
        );
        request
    };
    assert!(client.clone().oneshot(long()).await.is_err());
    let short = send(&mut client, chat("gpt-4o")).await;
    short.into_body().collect().await.unwrap();
    let answer = send(&mut client, long()).await;
    answer.into_body().collect().await.unwrap();
    // It waited until the whole limit was free.
    assert_eq!(available(&limiter, "gpt-4o"), [1_000 - 20]);
}

#[tokio::test(start_paused = true)]
async fn input_of_stream_settles_while_output_is_in_flight() {
    let quota = Quota::new().itpm(1_000).otpm(1_000);
    let limiter = builder().provider(ANTHROPIC).quota("gpt-4o", quota).build().unwrap();
    let mut client = client_returning(&RateLimitLayer::new(limiter.clone()), || {
        let start = r#"{"type": "message_start", "message": {"usage": {"input_tokens": 200,
            "cache_read_input_tokens": 100, "output_tokens": 1}}}"#;
        let delta = r#"{"type": "message_delta", "usage": {"output_tokens": 30}}"#;
        let event = |data: &str| format!("data: {}\n\n", data.replace('\n', " "));
        Frames::default().data(event(start)).data(event(delta)).into_response()
    });
    let mut body = send(&mut client, chat("gpt-4o")).await.into_body();
    let reserved = held(&limiter, "gpt-4o");
    assert!(reserved[0] > 0 && reserved[1] == 50, "{reserved:?}");
    body.frame().await.unwrap().unwrap();
    assert_eq!(held(&limiter, "gpt-4o"), [0, 50]);
    assert_eq!(available(&limiter, "gpt-4o"), [1_000 - 200, 1_000 - 50]);
    while body.frame().await.is_some() {}
    assert_eq!(available(&limiter, "gpt-4o"), [1_000 - 200, 1_000 - 30]);
}
