//! Tokens are estimated from requests.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use paceline::RateLimitLayer;
use paceline::limiter::{Limiter, TokioClock};
use paceline::provider::{COMPATIBLE_USAGE, Estimate, OPENAI};
use paceline::quota::{Dimension, Quota};
use tower::{Layer, ServiceExt, service_fn};

use super::rig::builder;

/// 18 bytes of text: 5 tokens, one for the message, one for the request, and `max_tokens`.
const CHAT: &str = r#"{"model": "gpt-4o", "max_tokens": 50, "stream": true,
    "messages": [{"role": "user", "content": "Say this is a test"}]}"#;

fn tokens(estimate: &Estimate) -> u64 {
    estimate.cost.amount(&Dimension::Tokens)
}

#[test]
fn d02_request_is_read_for_model_prompt_and_max_output() {
    let chat = OPENAI.read_request("/v1/chat/completions", CHAT.as_bytes());
    assert_eq!((chat.model.as_deref(), tokens(&chat)), (Some("gpt-4o"), 57));
    assert_eq!((chat.max_output, chat.stream, chat.exact), (Some(50), true, true));
    let embedding = br#"{"model": "text-embedding-3-small", "input": ["1234", "5678"]}"#;
    assert_eq!(tokens(&OPENAI.read_request("/v1/embeddings", embedding)), 2);
    let choices = br#"{"model": "m", "prompt": "12345678", "max_tokens": 7, "n": 3}"#;
    assert_eq!(tokens(&OPENAI.read_request("/v1/completions", choices)), 2 + 3 * 7);
}

#[test]
fn d02_more_text_or_larger_bound_costs_more() {
    let read = |words: usize, max_tokens: u64| {
        let content = "word ".repeat(words);
        let messages = serde_json::json!([{"role": "user", "content": content}]);
        let body =
            serde_json::json!({"model": "m", "max_tokens": max_tokens, "messages": messages});
        let body = body.to_string();
        let path = "/v1/chat/completions";
        [OPENAI, COMPATIBLE_USAGE].map(|p| tokens(&p.read_request(path, body.as_bytes())))
    };
    for (few, many) in read(100, 10).into_iter().zip(read(1_000, 10)) {
        assert!(many >= few + 1_000, "{few} {many}");
    }
    assert_eq!(read(100, 110), read(100, 10).map(|tokens| tokens + 100));
}

#[test]
fn d02_unreadable_request_is_estimated_from_size() {
    for body in [&b"no JSON at all, just some bytes."[..], b"\xff\xfe\x00\x01"] {
        let estimate = OPENAI.read_request("/v1/chat/completions", body);
        assert!(!estimate.exact);
        assert_eq!(tokens(&estimate), (body.len() as u64).div_ceil(4));
    }
}

/// Returns the tokens charged by the layer when the request is sent.
async fn charged<B>(body: B) -> u64
where
    B: paceline::middleware::PeekBody + Send + 'static,
{
    let quota = Quota::new().tpm(1_000);
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota).clock(TokioClock::new());
    let limiter: Limiter = limiter.build().unwrap();
    let seen = limiter.clone();
    let inner = service_fn(move |_: Request<B>| {
        let used = seen.stats("gpt-4o").limits[0].used.to_string();
        async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(used))) }
    });
    let request = Request::post("/v1/chat/completions").body(body).unwrap();
    let response = RateLimitLayer::new(limiter).layer(inner).oneshot(request).await.unwrap();
    let body = http_body_util::BodyExt::collect(response).await.unwrap().to_bytes();
    std::str::from_utf8(&body).unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn d02_layer_estimates_requests_in_memory_before_sending() {
    assert_eq!(charged(CHAT.to_owned()).await, 57);
    assert_eq!(charged(Bytes::from(CHAT)).await, 57);
    assert_eq!(charged(CHAT.as_bytes().to_vec()).await, 57);
    assert_eq!(charged(Full::<Bytes>::from(CHAT)).await, 57);
}
