//! The layer around a service that is always ready, compared with other crates:
//! `cargo bench --bench layer --features axum`.
//!
//! Row 5 of the speed table. All times include the bare service; subtract `bare` of the same group to get
//! the time of a layer.
//!
//! - `paceline` checks RPM, TPM and RPD limits in one decision, and charges requests when they are sent,
//!   as OpenAI does.
//! - `paceline_held` settles by the response, which takes the lock and reads the clock a second time.
//! - tower_governor and `RateLimit` count only requests.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "peers/layers.rs"]
mod layers;
#[path = "peers/map.rs"]
mod map;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use layers::{MapService, tower_governor, tower_governor_headers};
use paceline::Limiter;
use paceline::middleware::respond::Scope;
use paceline::middleware::{Classified, RateLimitLayer};
use paceline::provider::{COMPATIBLE_USAGE, OPENAI, Profile, Scanner};
use paceline::quota::{Cost, Quota};
use tokio::runtime::Runtime;
use tower::buffer::Buffer;
use tower::limit::RateLimit;
use tower::limit::rate::Rate;
use tower::{Layer, Service, ServiceExt};

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = closures, by_header, chats, refusals
}
criterion_main!(benches);

const KEY: &str = "gpt-4o-mini-2024-07-18";

/// Measures requests that consist of a number of tokens.
fn closures(c: &mut Criterion) {
    let mut group = c.benchmark_group("5_closure_service");
    let echo = || tower::service_fn(|tokens: u64| ready(Ok::<_, Infallible>(tokens)));
    let tokens = || black_box(50_u64);
    drive(&mut group, "bare", echo(), tokens);
    drive(&mut group, "paceline", by_tokens(OPENAI).layer(echo()), tokens);
    drive(&mut group, "paceline_gated", by_tokens(OPENAI).key(KEY).layer(echo()), tokens);
    drive(&mut group, "paceline_held", by_tokens(COMPATIBLE_USAGE).layer(echo()), tokens);
    drive(&mut group, "mutex_hashmap", MapService::new(echo(), 3e9, KEY, false), tokens);
    drive(&mut group, "mutex_hashmap_settled", MapService::new(echo(), 3e9, KEY, true), tokens);
    let runtime = runtime();
    // Both create timers or tasks, which need a runtime.
    let (limited, buffered) = {
        let _inside = runtime.enter();
        let limited = || RateLimit::new(echo(), endless());
        (limited(), Buffer::new(limited(), 64))
    };
    drive_on(&runtime, &mut group, "tower_rate_limit", limited, tokens);
    drive_on(&runtime, &mut group, "tower_rate_limit_in_buffer", buffered, tokens);
    group.finish();
}

/// Measures HTTP requests with a tenant in a header, the usual case for tower_governor.
fn by_header(c: &mut Criterion) {
    let mut group = c.benchmark_group("5_http_by_header");
    let request = Request::get("/").header("x-tenant", KEY).body(()).expect("a valid request");
    let request = || black_box(&request).clone();
    let layer = tenants(ample_limiter(OPENAI));
    drive(&mut group, "bare", empty_answers(), request);
    drive(&mut group, "paceline", layer.layer(empty_answers()), request);
    drive(&mut group, "tower_governor", tower_governor(empty_answers(), true), request);
    let with_headers = tower_governor_headers(empty_answers(), true);
    drive(&mut group, "tower_governor_headers", with_headers, request);
    let map = MapService::new(empty_answers(), 3e9, KEY, false);
    drive(&mut group, "mutex_hashmap", map, request);
    group.finish();
}

/// Measures a chat request of 300 bytes, read for its model and cost, and its response, read for its
/// usage.
fn chats(c: &mut Criterion) {
    let mut group = c.benchmark_group("5_http_chat");
    let body = chat();
    let request = Request::post("/v1/chat/completions").body(Full::from(body.clone()));
    let request = request.expect("a valid request");
    let request = || black_box(&request).clone();
    let answer = || {
        tower::service_fn(|_: Request<Full<Bytes>>| {
            ready(Ok::<_, Infallible>(Response::new(Full::from(ANSWER))))
        })
    };
    drive(&mut group, "bare", drained(answer()), request);
    for (name, profile) in [("paceline", OPENAI), ("paceline_held", COMPATIBLE_USAGE)] {
        let layer = RateLimitLayer::new(ample_limiter(profile)).provider(profile);
        drive(&mut group, name, drained(layer.layer(answer())), request);
    }
    group.bench_function("reading_the_request", |b| {
        b.iter(|| OPENAI.read_request("/v1/chat/completions", black_box(&body)));
    });
    group.bench_function("reading_the_response", |b| {
        b.iter(|| {
            let mut scanner = Scanner::new(OPENAI, None);
            scanner.feed(black_box(ANSWER.as_bytes()));
            scanner.finish()
        });
    });
    group.finish();
}

/// Measures refusals: a typed error, or a 429 response with `retry-after`.
fn refusals(c: &mut Criterion) {
    let mut group = c.benchmark_group("5_refusal");
    let request = Request::get("/").header("x-tenant", KEY).body(()).expect("a valid request");
    let request = || black_box(&request).clone();
    let once = || limiter(OPENAI, Quota::new().rpd(1).rpm(500).tpm(30_000));
    let rejecting = || tenants(once()).reject().layer(empty_answers());
    refuse(&mut group, "paceline_error", rejecting(), request, Result::is_err);
    let by_header = Scope::header(HeaderName::from_static("x-tenant")).plain();
    let answering = RateLimitLayer::new(once()).respond().scope(by_header).layer(empty_answers());
    refuse(&mut group, "paceline_429", answering, request, is_429);
    refuse(
        &mut group,
        "tower_governor_429",
        tower_governor(empty_answers(), false),
        request,
        is_429,
    );
    let with_headers = tower_governor_headers(empty_answers(), false);
    refuse(&mut group, "tower_governor_headers_429", with_headers, request, is_429);
    let map = MapService::new(empty_answers(), 50.0, KEY, false);
    refuse(&mut group, "mutex_hashmap_error", map, request, Result::is_err);
    group.finish();
}

/// Returns a limiter that a benchmark never exhausts: a token refills every nanosecond.
fn ample_limiter(profile: Profile) -> Limiter {
    limiter(profile, Quota::new().rpm(6_000_000_000).tpm(60_000_000_000).rpd(8_640_000_000_000))
}

fn limiter(profile: Profile, quota: Quota) -> Limiter {
    let quota = quota.with_algorithm(paceline::quota::Algorithm::TokenBucket);
    Limiter::builder().provider(profile).quota("*", quota).build().expect("a valid quota")
}

type Tokens = RateLimitLayer<fn(&u64) -> Classified, fn(&u64) -> Option<Cost>>;

fn by_tokens(profile: Profile) -> Tokens {
    RateLimitLayer::new(ample_limiter(profile))
        .classify((|tokens: &u64| Classified::new(KEY, Cost::new().tokens(*tokens))) as _)
        .observe((|tokens: &u64| Some(Cost::new().tokens(*tokens))) as _)
}

type Tenants = RateLimitLayer<fn(&Request<()>) -> Classified, fn(&Response<Body>) -> Option<Cost>>;

fn tenants(limiter: Limiter) -> Tenants {
    fn classify(request: &Request<()>) -> Classified {
        let tenant = request.headers().get("x-tenant").and_then(|tenant| tenant.to_str().ok());
        Classified::new(tenant.unwrap_or_default(), Cost::new())
    }
    RateLimitLayer::new(limiter).classify(classify as _).observe((|_: &Response<Body>| None) as _)
}

type Answers = tower::util::ServiceFn<fn(Request<()>) -> Ready<Result<Response<Body>, Infallible>>>;

fn empty_answers() -> Answers {
    tower::service_fn(|_| ready(Ok(Response::new(Body::empty()))))
}

/// Wraps a service so that response bodies are read to their end.
fn drained<S, B>(service: S) -> impl Service<Request<Full<Bytes>>, Response = (), Error = S::Error>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    service.and_then(|response: Response<B>| async {
        let mut body = std::pin::pin!(response.into_body());
        while let Some(frame) = body.frame().await {
            black_box(frame.expect("in memory"));
        }
        Ok(())
    })
}

fn endless() -> Rate {
    Rate::new(u64::MAX, Duration::from_secs(3_600))
}

/// Measures admitted requests in sequence.
fn drive<S, R>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    service: S,
    request: impl Fn() -> R,
) where
    S: Service<R, Error: std::fmt::Debug>,
{
    drive_on(&runtime(), group, name, service, request);
}

fn drive_on<S, R>(
    runtime: &Runtime,
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut service: S,
    request: impl Fn() -> R,
) where
    S: Service<R, Error: std::fmt::Debug>,
{
    group.bench_function(name, |b| {
        b.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    let ready = service.ready().await.expect("ready");
                    black_box(ready.call(request()).await.expect("admitted"));
                }
                start.elapsed()
            })
        });
    });
}

/// Measures refused requests in sequence. The first request is admitted and not measured.
fn refuse<S, R>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut service: S,
    request: impl Fn() -> R,
    is_refusal: fn(&Result<S::Response, S::Error>) -> bool,
) where
    S: Service<R, Error: std::fmt::Debug>,
{
    let runtime = runtime();
    let mut once = async || {
        let ready = service.ready().await.expect("ready");
        is_refusal(&black_box(ready.call(request()).await))
    };
    assert!(!runtime.block_on(once()), "the first request is admitted");
    group.bench_function(name, |b| {
        b.iter_custom(|times| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..times {
                    assert!(once().await, "later requests are refused");
                }
                start.elapsed()
            })
        });
    });
}

fn is_429<B, E>(result: &Result<Response<B>, E>) -> bool {
    result.as_ref().is_ok_and(|response| response.status() == StatusCode::TOO_MANY_REQUESTS)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

fn chat() -> Bytes {
    let body = serde_json::json!({"model": "gpt-4o", "max_tokens": 100, "temperature": 0.2, "messages": [
        {"role": "system", "content": "You are a helpful assistant. Answer in one sentence."},
        {"role": "user", "content": "Which is the highest mountain of the Alps, and who climbed it \
            first? Name the year as well, and the valley that they set out from."},
    ]});
    body.to_string().into()
}

const ANSWER: &str = r#"{"id": "chatcmpl-1", "object": "chat.completion", "created": 1735689600,
"model": "gpt-4o-2024-08-06", "choices": [{"index": 0, "message": {"role": "assistant", "content":
"Mont Blanc; Balmat and Paccard in 1786, from Chamonix."}, "finish_reason": "stop"}], "usage":
{"prompt_tokens": 45, "completion_tokens": 19, "total_tokens": 64}}"#;
