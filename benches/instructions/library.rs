//! Instruction counts of the library's hot paths, measured with valgrind. Unlike times, counts don't
//! depend on the load of the machine.
//!
//! `bash scripts/instructions.sh` compares the counts with benches/instructions/accepted.toml and fails
//! if one differs by more than 3 %. After an intended change, `bash scripts/instructions.sh --accept`
//! updates the file. The cases correspond to benches/admit.rs, layer.rs and stream.rs, with a manual
//! clock.

mod count;

use std::convert::Infallible;
use std::future::ready;
use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use count::{count, poll_once, run};
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use paceline::Limiter;
use paceline::limiter::ManualClock;
use paceline::middleware::respond::Scope;
use paceline::middleware::{Classified, RateLimitLayer};
use paceline::provider::{COMPATIBLE_USAGE, OPENAI, Profile, Scanner};
use paceline::quota::{Algorithm, Cost, Quota};
use tower::{Layer, Service, ServiceExt};

fn main() {
    run(&[
        ("by_name", || by_name(OPENAI)),
        ("held", || by_name(COMPATIBLE_USAGE)),
        ("handle", handle),
        ("three_keys", three_keys),
        ("refusal", refusal),
        ("layer", layer),
        ("layer_429", layer_429),
        ("chat_request", chat_request),
        ("response_events", || response(EVENTS, &events())),
        ("response_json", || response(JSON, ANSWER)),
    ]);
}

/// Counts admission by name. OpenAI charges a request when it is sent; for a compatible server the tokens
/// are held until the request is settled.
fn by_name(profile: Profile) {
    let (limiter, cost) = (roomy(profile), cost());
    count(|| limiter.try_acquire(black_box(KEY), &cost).expect("roomy").settle(&cost));
}

fn handle() {
    let (key, cost) = (roomy(OPENAI).key(KEY).expect("a glob matches"), cost());
    count(|| key.try_acquire(black_box(&cost)).expect("roomy").settle(&cost));
}

fn three_keys() {
    let (limiter, cost) = (roomy(OPENAI), cost());
    let keys = ["tenant:00000042", KEY, "account"];
    count(|| {
        let acquire = limiter.acquire_all(black_box(&keys), &cost);
        poll_once(acquire).expect("roomy").settle(&cost);
    });
}

fn refusal() {
    let (limiter, cost) = (used_up(KEY), cost());
    count(|| {
        let refused = limiter.try_acquire(black_box(KEY), &cost).expect_err("used up");
        black_box(refused.retry_after());
    });
}

/// Counts requests that consist of a number of tokens, with the layer around a service that is always
/// ready.
fn layer() {
    let layer = RateLimitLayer::new(roomy(OPENAI))
        .classify(|tokens: &u64| Classified::new(KEY, Cost::new().tokens(*tokens)))
        .observe(|tokens: &u64| Some(Cost::new().tokens(*tokens)));
    let echo = tower::service_fn(|tokens: u64| ready(Ok::<_, Infallible>(tokens)));
    let mut service = layer.layer(echo);
    count(|| {
        let call = async { service.ready().await?.call(black_box(50)).await };
        black_box(poll_once(call).expect("admitted"));
    });
}

/// Counts the response to a request over the limit in server mode.
fn layer_429() {
    let tenant = Scope::header(HeaderName::from_static("x-tenant")).plain();
    let empty = tower::service_fn(|_: Request<()>| {
        ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())))
    });
    let mut service = RateLimitLayer::new(used_up(SCOPED)).respond().scope(tenant).layer(empty);
    let request = Request::get("/").header("x-tenant", KEY).body(()).expect("a valid request");
    count(|| {
        let request = black_box(&request).clone();
        let call = async { service.ready().await?.call(request).await };
        let response = poll_once(call).expect("infallible");
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    });
}

/// Counts an OpenAI chat request, read for its model and cost, and its response, read for its usage.
fn chat_request() {
    let answer = tower::service_fn(|_: Request<Full<Bytes>>| {
        ready(Ok::<_, Infallible>(Response::new(Full::from(ANSWER))))
    });
    let clock = ManualClock::new();
    let limiter = limiter_at(&clock, OPENAI, endless());
    let mut service = RateLimitLayer::new(limiter).provider(OPENAI).layer(answer);
    let request = Request::post("/v1/chat/completions").body(Full::from(CHAT));
    let request = request.expect("a valid request");
    let mut send = || {
        let request = black_box(&request).clone();
        poll_once(async {
            let response = service.ready().await.expect("ready").call(request).await;
            let body = response.expect("admitted").into_body().collect().await;
            black_box(body.expect("in memory"));
        });
    };
    // Until the answers have confirmed the limits.
    for _ in 0..40 {
        send();
        clock.advance(Duration::from_secs(2));
    }
    count(send);
}

/// Counts the scan of a response body for its usage.
fn response(content_type: &str, body: &str) {
    count(|| {
        let mut scanner = Scanner::new(OPENAI, Some(content_type));
        scanner.feed(black_box(body.as_bytes()));
        assert!(scanner.finish().usage.is_some());
    });
}

/// Returns a limiter with RPM, TPM and RPD limits that are never exhausted.
fn roomy(profile: Profile) -> Limiter {
    limiter(profile, endless())
}

fn endless() -> Quota {
    Quota::new().rpm(6_000_000_000).tpm(60_000_000_000).rpd(8_640_000_000_000)
}

/// Returns a limiter whose only daily request of `key` is used.
fn used_up(key: &str) -> Limiter {
    let limiter = limiter(OPENAI, Quota::new().rpm(500).tpm(30_000).rpd(1));
    drop(limiter.try_acquire(key, &cost()).expect("the first request is admitted"));
    limiter
}

fn limiter(profile: Profile, quota: Quota) -> Limiter {
    limiter_at(&ManualClock::new(), profile, quota)
}

fn limiter_at(clock: &ManualClock, profile: Profile, quota: Quota) -> Limiter {
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let builder = Limiter::builder().provider(profile).quota("*", quota);
    builder.clock(clock.clone()).build().expect("a valid quota")
}

fn cost() -> Cost {
    Cost::new().tokens(50)
}

/// Returns an event stream of 100 words.
fn events() -> String {
    let head = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1757000000,"model":"gpt-4o-2024-08-06","#;
    let word = r#""choices":[{"index":0,"delta":{"content":" Alps"},"logprobs":null,"finish_reason":null}],"usage":null}"#;
    let usage =
        r#""choices":[],"usage":{"prompt_tokens":19,"completion_tokens":100,"total_tokens":119}}"#;
    format!("{head}{word}\n\n").repeat(100) + &format!("{head}{usage}\n\ndata: [DONE]\n\n")
}

const KEY: &str = "gpt-4o-mini-2024-07-18";

/// The key of a header scope with the value `KEY`.
const SCOPED: &str = "x-tenant:gpt-4o-mini-2024-07-18";

const JSON: &str = "application/json";

const EVENTS: &str = "text/event-stream";

const CHAT: &str = r#"{"model": "gpt-4o", "max_tokens": 100, "temperature": 0.2, "messages": [
{"role": "system", "content": "You are a helpful assistant. Answer in one sentence."},
{"role": "user", "content": "Which is the highest mountain of the Alps, and who climbed it first?"}]}"#;

const ANSWER: &str = r#"{"id": "chatcmpl-1", "object": "chat.completion", "created": 1735689600,
"model": "gpt-4o-2024-08-06", "choices": [{"index": 0, "message": {"role": "assistant", "content":
"Mont Blanc; Balmat and Paccard in 1786, from Chamonix."}, "finish_reason": "stop"}], "usage":
{"prompt_tokens": 45, "completion_tokens": 19, "total_tokens": 64}}"#;
