//! The span of a request, from the call to the end of the response body, and the events inside it.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use paceline::limiter::{Limiter, Reduction, TokioClock, UnknownKey};
use paceline::middleware::RateLimitLayer;
use paceline::provider::{GEMINI, OPENAI, Profile};
use paceline::quota::{Algorithm, Margin, Quota};
use tower::{Layer, Service, ServiceExt, service_fn};
use tracing::{Instrument, Level, info_span};

use super::log::{Line, Log};

const SPAN: &str = "gen_ai.client.operation";
const USAGE: &str = r#"{"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 9}}"#;
const SECRET: &str = "sk-very-secret";
const PROMPT: &str = "Say this is a test";

fn limiter(profile: Profile, quota: Quota) -> Limiter {
    let builder = Limiter::builder().margin(Margin::NONE).reduction(Reduction::OFF);
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    builder.provider(profile).clock(TokioClock::new()).quota("m", quota).build().unwrap()
}

fn chat() -> Request<String> {
    let messages = serde_json::json!([{"role": "user", "content": PROMPT}]);
    let body = serde_json::json!({"model": "m", "max_tokens": 50, "messages": messages});
    let request = Request::post("/v1/chat/completions").header("authorization", SECRET);
    request.body(body.to_string()).unwrap()
}

/// Returns a client whose provider logs an event and returns this response for each request.
fn client(
    limiter: &Limiter,
    status: u16,
    body: &'static str,
) -> impl Service<
    Request<String>,
    Response = Response<paceline::middleware::ResponseBody<Full<Bytes>>>,
    Error = paceline::middleware::RateLimitError,
> + Clone {
    let answer = move |_: Request<String>| {
        tracing::info!("sent");
        let response = Response::builder().status(status).body(Full::from(body)).unwrap();
        ready(Ok::<_, Infallible>(response))
    };
    RateLimitLayer::new(limiter.clone()).layer(service_fn(answer))
}

/// Returns the only span.
fn span(log: &Log) -> Line {
    let [span] = &log.named(SPAN)[..] else { panic!("not one span: {:?}", log.lines()) };
    span.clone()
}

#[tokio::test(start_paused = true)]
async fn span_covers_call_to_end_of_body_and_has_usage() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(OPENAI, Quota::new().rpm(500).tpm(30_000));
    let call = async {
        let response = client(&limiter, 200, USAGE).oneshot(chat()).await.unwrap();
        assert!(!span(&log).closed);
        assert_eq!(span(&log).field("gen_ai.usage.output_tokens"), None);
        response.into_body().collect().await.unwrap();
    };
    call.instrument(info_span!("agent")).await;
    let span = span(&log);
    assert!(span.closed);
    assert_eq!(
        (span.target, span.level, span.inside),
        ("paceline::request", Level::INFO, Some("agent"))
    );
    let expected = [
        ("otel.name", "chat m"),
        ("otel.kind", "client"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.usage.input_tokens", "12"),
        ("gen_ai.usage.output_tokens", "9"),
        ("http.response.status_code", "200"),
        ("paceline.key", "m"),
        ("paceline.waited_ms", "0.0"),
    ];
    for (name, value) in expected {
        assert_eq!(span.field(name), Some(value), "{name}");
    }
    assert_eq!(span.field("error.type"), None);
    assert!(span.field("paceline.reserved_tokens").is_some());
    assert!(span.field("paceline.charged_tokens").is_some());
    assert_eq!(log.named("sent")[0].inside, Some(SPAN));
}

#[tokio::test(start_paused = true)]
async fn wait_is_recorded_in_span_and_logged_inside() {
    let (log, _guard) = Log::at(Level::DEBUG);
    let limiter = limiter(OPENAI, Quota::new().rpm(1));
    let client = client(&limiter, 200, USAGE);
    for _ in 0..2 {
        let response = client.clone().oneshot(chat()).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
    let spans = log.named(SPAN);
    let waited = spans[1].field("paceline.waited_ms").unwrap().parse::<f64>().unwrap();
    assert!((60_000.0..60_010.0).contains(&waited), "{waited}");
    assert_eq!(log.named("sent")[1].inside, Some(SPAN));
    let [line] = &log.named("waited")[..] else { panic!("{:?}", log.lines()) };
    let duration = line.field("duration_ms").unwrap().parse::<f64>().unwrap();
    assert_eq!((duration, line.inside), (waited, Some(SPAN)));
}

#[tokio::test(start_paused = true)]
async fn status_429_is_span_error_and_cool_down_is_logged_inside() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(OPENAI, Quota::new().rpm(500));
    let error = r#"{"error": {"code": "rate_limit_exceeded", "message": "slow down"}}"#;
    let response = client(&limiter, 429, error).oneshot(chat()).await.unwrap();
    response.into_body().collect().await.unwrap();
    let span = span(&log);
    assert_eq!(span.field("error.type"), Some("429"));
    assert_eq!(span.field("otel.status_code"), Some("ERROR"));
    assert_eq!(log.named("cooling down")[0].inside, Some(SPAN));
}

#[tokio::test(start_paused = true)]
async fn error_in_success_and_own_refusal_are_span_errors() {
    let in_band = r#"{"error": {"code": "server_error", "message": "oops"}}"#;
    let mut kinds = Vec::new();
    for (rpm, times, body) in [(9, 1, in_band), (1, 2, USAGE)] {
        let (log, _guard) = Log::at(Level::INFO);
        let limiter = limiter(OPENAI, Quota::new().rpm(rpm));
        let answer =
            service_fn(move |_| ready(Ok::<_, Infallible>(Response::new(Full::from(body)))));
        let client = RateLimitLayer::new(limiter).reject().layer(answer);
        for _ in 0..times {
            if let Ok(response) = client.clone().oneshot(chat()).await {
                response.into_body().collect().await.unwrap();
            }
        }
        let last = log.named(SPAN).pop().unwrap();
        assert!(last.closed);
        kinds.push(last.field("error.type").unwrap().to_owned());
    }
    assert_eq!(kinds, ["server_error", "deadline_exceeded"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_tenant_is_no_unknown_model() {
    for (quota, error) in [("m", "unknown_key"), ("tenant:7", "unknown_model")] {
        let (log, _guard) = Log::at(Level::INFO);
        let builder = Limiter::builder().provider(OPENAI).unknown_key(UnknownKey::Refuse);
        let limiter = builder.quota(quota, Quota::new().rpm(9)).build().unwrap();
        let answer = service_fn(|_: Request<String>| {
            ready(Ok::<_, Infallible>(Response::new(Full::from(USAGE))))
        });
        let client = RateLimitLayer::new(limiter).scope("tenant:7").layer(answer);
        assert!(client.oneshot(chat()).await.is_err());
        assert_eq!(span(&log).field("error.type"), Some(error));
    }
}

#[tokio::test(start_paused = true)]
async fn request_dropped_while_waiting_ends_span_as_cancelled() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(OPENAI, Quota::new().rpm(1));
    let mut client = client(&limiter, 200, USAGE);
    drop(client.ready().await.unwrap().call(chat()).await.unwrap());
    drop(client.ready().await.unwrap().call(chat()));
    let spans = log.named(SPAN);
    assert_eq!(spans[0].field("error.type"), None);
    assert_eq!((spans[1].field("error.type"), spans[1].closed), (Some("cancelled"), true));
}

#[tokio::test(start_paused = true)]
async fn provider_and_operation_names_follow_otel_conventions() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(GEMINI, Quota::new().rpm(500));
    let request = Request::post("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    let request = request.body(r#"{"contents": []}"#.to_owned()).unwrap();
    drop(client(&limiter, 200, "{}").oneshot(request).await.unwrap());
    let span = span(&log);
    assert_eq!(span.field("otel.name"), Some("generate_content gemini-2.5-pro"));
    assert_eq!(span.field("gen_ai.provider.name"), Some("gcp.gemini"));
}

#[tokio::test(start_paused = true)]
async fn span_has_requested_model_next_to_other_key() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(OPENAI, Quota::new().rpm(500));
    let answer = service_fn(|_| ready(Ok::<_, Infallible>(Response::new(Full::from(USAGE)))));
    let client = RateLimitLayer::new(limiter).key("account").layer(answer);
    drop(client.clone().oneshot(chat()).await.unwrap());
    let mut request = chat();
    request.extensions_mut().insert(paceline::middleware::Ask::new().key("mine"));
    drop(client.oneshot(request).await.unwrap());
    let names = |line: &Line| {
        ["paceline.key", "gen_ai.request.model"].map(|name| line.field(name).unwrap().to_owned())
    };
    let names: Vec<_> = log.named(SPAN).iter().map(names).collect();
    assert_eq!(names, [["account", "m"], ["mine", "m"]]);
}

#[tokio::test(start_paused = true)]
async fn prompts_headers_and_responses_are_not_logged() {
    let (log, _guard) = Log::at(Level::TRACE);
    let limiter = limiter(OPENAI, Quota::new().rpm(500).tpm(30_000));
    let error = r#"{"error": {"message": "Bad key sk-very-secret"}}"#;
    for (status, body) in [(200, USAGE), (401, error)] {
        let response = client(&limiter, status, body).oneshot(chat()).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
    let all = format!("{:?}", log.lines());
    assert!(all.contains("corrected") || all.contains("settled"), "{all}");
    assert!(!all.contains(SECRET) && !all.contains(PROMPT), "{all}");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_span_inside_the_span_of_the_caller() {
    let (log, _guard) = Log::at(Level::INFO);
    let limiter = limiter(OPENAI, Quota::new().rpm(500));
    let tries = Arc::new(AtomicU16::new(0));
    let answer = service_fn(move |_: Request<String>| {
        let status = if tries.fetch_add(1, Relaxed) == 0 { 500 } else { 200 };
        let response = Response::builder().status(status).body(Full::from(USAGE)).unwrap();
        ready(Ok::<_, Infallible>(response))
    });
    let mut client = RateLimitLayer::new(limiter).retry(1).layer(answer);
    client.ready().await.unwrap();
    let call = info_span!("agent").in_scope(|| client.call(chat()));
    let response = call.instrument(info_span!("elsewhere")).await.unwrap();
    response.into_body().collect().await.unwrap();
    let parents: Vec<_> = log.named(SPAN).iter().map(|span| span.inside).collect();
    assert_eq!(parents, [Some("agent"), Some("agent")]);
}
