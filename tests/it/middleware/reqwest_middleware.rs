//! The layer as a middleware of reqwest-middleware, over real connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::Extensions;
use paceline::limiter::{AcquireError, Code, Limiter, RefusalKind};
use paceline::middleware::{
    ChainedRequest, Classified, Journey, RateLimitError, RateLimitLayer, find_refusal,
};
use paceline::quota::{Cost, Quota};
use paceline_testing::log_buffer::LogBuffer;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_tracing::TracingMiddleware;
use tower::Layer;
use tracing_subscriber::fmt::format::FmtSpan;

use super::kinds::{LIMITED, NO_MONEY, TOO_LARGE, USED_UP};
use super::reqwest::{CHAT, client, closed_port, limiter, ok, respond_once};
use super::{USAGE, available, held, settle_down};

/// A middleware that counts requests.
#[derive(Clone, Default)]
struct RequestCounter(Arc<AtomicUsize>);

impl RequestCounter {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Middleware for RequestCounter {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        self.0.fetch_add(1, Ordering::Relaxed);
        next.run(request, extensions).await
    }
}

fn chain(link: impl Middleware) -> ClientWithMiddleware {
    ClientBuilder::new(client()).with(link).build()
}

/// Returns a client with three retries around a counter around the middleware.
fn retried(link: impl Middleware) -> (ClientWithMiddleware, RequestCounter) {
    let retries = ExponentialBackoff::builder()
        .retry_bounds(Duration::from_millis(1), Duration::from_millis(2))
        .build_with_max_retries(3);
    let attempts = RequestCounter::default();
    let client = ClientBuilder::new(client())
        .with(RetryTransientMiddleware::new_with_policy(retries))
        .with(attempts.clone())
        .with(link)
        .build();
    (client, attempts)
}

#[tokio::test]
async fn refused_request_in_a_chain_costs_no_tokens() {
    let limiter = limiter();
    let client = chain(RateLimitLayer::new(limiter.clone()));
    let answer = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}".to_owned();
    let url = format!("{}/v1/chat/completions", respond_once(answer).await);
    let response = client.post(&url).body(CHAT).send().await.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(response.text().await.unwrap(), "{}");
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![10_000]));
}

/// Each kind of refusal moves in a chain what it moves in a layer; the caller gets the provider's answer.
#[tokio::test]
async fn refusal_in_a_chain_acts_by_its_kind() {
    // An account counts as refused after three in a row.
    let cases = [
        (429, LIMITED, 1, Some(RefusalKind::Rate)),
        (429, USED_UP, 1, Some(RefusalKind::Window)),
        (429, NO_MONEY, 3, None),
        (429, TOO_LARGE, 3, None),
        (503, "Overloaded", 3, None),
    ];
    for (status, body, times, cooling_kind) in cases {
        let limiter = limiter();
        let client = chain(RateLimitLayer::new(limiter.clone()));
        let send = async |url: &str| client.post(url).body(CHAT).send().await;
        for _ in 0..times {
            let head = format!("HTTP/1.1 {status} Refused\r\nretry-after: 30");
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let url = format!("{}/v1/chat/completions", respond_once(answer).await);
            let response = send(&url).await.unwrap();
            assert_eq!(response.status(), status, "{body}");
            assert_eq!(response.text().await.unwrap(), body);
        }
        let stats = limiter.stats("gpt-4o");
        let is_account_refused = body == NO_MONEY;
        let moved = (stats.cooling_kind, stats.account_refused.is_some());
        assert_eq!(moved, (cooling_kind, is_account_refused), "{body}");
        assert_eq!(held(&limiter, "gpt-4o"), [0], "{body}");
        if is_account_refused {
            let (_closed, url) = closed_port();
            let error = send(&url).await.unwrap_err();
            let refused = find_refusal(&error).and_then(AcquireError::refused);
            let refused = refused.map(|refused| refused.code);
            assert_eq!(refused, Some(Code::AccountRefused), "nothing is sent");
        }
    }
}

async fn chat_url(answer: &str) -> String {
    format!("{}/v1/chat/completions", respond_once(ok(answer)).await)
}

#[tokio::test]
async fn response_keeps_url_and_settles_by_usage() {
    let limiter = limiter();
    let client = chain(RateLimitLayer::new(limiter.clone()));
    let url = chat_url(USAGE).await;
    let response = client.post(&url).body(CHAT).send().await.unwrap();
    assert_eq!(response.url().as_str(), url);
    assert!(held(&limiter, "gpt-4o")[0] >= 500);
    assert_eq!(response.text().await.unwrap(), USAGE);
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![9_979]));
}

#[tokio::test]
async fn journey_in_extensions_reports_facts() {
    let limiter = limiter();
    let journey = Journey::new();
    let request = chain(RateLimitLayer::new(limiter)).post(chat_url(USAGE).await).body(CHAT);
    let response = request.with_extension(journey.clone()).send().await.unwrap();
    response.bytes().await.unwrap();
    let facts = journey.facts();
    assert_eq!(facts.key, "gpt-4o");
    assert_eq!(facts.usage.map(|usage| (usage.input, usage.output)), Some((12, 9)));
}

#[derive(Clone)]
struct Team(&'static str);

#[tokio::test]
async fn classify_closure_reads_request_and_extensions() {
    let limiter = Limiter::builder().quota("team:*", Quota::new().tpm(100)).build().unwrap();
    let classify = |chained: &ChainedRequest<'_>| {
        let team = chained.extensions().get::<Team>().map_or("none", |team| team.0);
        let cost = chained.request().url().path().len() as u64;
        Classified::new(format!("team:{team}"), Cost::new().tokens(cost))
    };
    let client = chain(RateLimitLayer::new(limiter.clone()).classify(classify));
    let request = client.post(chat_url("{}").await).body(CHAT).with_extension(Team("blue"));
    request.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(available(&limiter, "team:blue"), [100 - "/v1/chat/completions".len() as u64]);
}

fn scarce() -> Limiter {
    Limiter::builder().quota("gpt-4o", Quota::new().tpm(10)).build().unwrap()
}

#[tokio::test]
async fn refusal_keeps_error_type() {
    let client = chain(RateLimitLayer::new(scarce()));
    let error = client.post(chat_url("{}").await).body(CHAT).send().await.unwrap_err();
    let Error::Middleware(inside) = &error else { panic!("{error:?}") };
    let limited = inside.downcast_ref::<RateLimitError>().unwrap();
    assert_eq!((limited.code(), limited.key()), (Some(Code::ExceedsCapacity), Some("gpt-4o")));
    assert_eq!(find_refusal(&error).unwrap().refused(), limited.refused());
}

#[tokio::test]
async fn refusal_is_not_retried_and_is_found_behind_retries() {
    let limiter = limiter();
    let full = limiter.acquire("gpt-4o", &Cost::new().tokens(10_000)).await.unwrap();
    for (layer, code) in [
        (RateLimitLayer::new(scarce()), Code::ExceedsCapacity),
        (RateLimitLayer::new(limiter.clone()).reject(), Code::TpmExceeded),
    ] {
        let (client, attempts) = retried(layer);
        let error = client.post(chat_url("{}").await).body(CHAT).send().await.unwrap_err();
        let refused = find_refusal(&error).and_then(AcquireError::refused);
        assert_eq!(refused.map(|refused| refused.code), Some(code));
        assert_eq!(attempts.count(), 1);
    }
    full.release();
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![10_000]));
}

#[tokio::test]
async fn connect_error_passes_unchanged_and_is_retried() {
    let limiter = limiter();
    let (_socket, url) = closed_port();
    let layer = RateLimitLayer::new(limiter.clone());
    let error = chain(layer.clone()).post(&url).body(CHAT).send().await.unwrap_err();
    assert!(matches!(&error, Error::Reqwest(error) if error.is_connect()), "{error:?}");
    let (client, attempts) = retried(layer);
    client.post(&url).body(CHAT).send().await.unwrap_err();
    assert_eq!(attempts.count(), 4);
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![10_000]));
}

#[tokio::test]
async fn request_dropped_while_waiting_leaves_queue_uncharged() {
    let limiter = limiter();
    let full = limiter.acquire("gpt-4o", &Cost::new().tokens(10_000)).await.unwrap();
    let client = chain(RateLimitLayer::new(limiter.clone()));
    let url = chat_url(USAGE).await;
    let waiting = tokio::spawn(client.post(&url).body(CHAT).send());
    while limiter.stats("gpt-4o").waiting == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    settle_down().await;
    assert_eq!(limiter.stats("gpt-4o").waiting, 0);
    full.release();
    client.post(&url).body(CHAT).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(available(&limiter, "gpt-4o"), [9_979]);
}

/// A layer of a Tower stack around a chain that contains a rate-limit middleware.
#[tokio::test]
async fn layer_around_chain_recognizes_refusals() {
    let limiter = limiter();
    let inside = ClientBuilder::new(client()).with(RateLimitLayer::new(scarce())).build();
    let service = RateLimitLayer::new(limiter.clone()).layer(inside);
    let mut request = Request::new(http::Method::POST, chat_url("{}").await.parse().unwrap());
    *request.body_mut() = Some(CHAT.into());
    tower::ServiceExt::oneshot(service, request).await.unwrap_err();
    assert_eq!((held(&limiter, "gpt-4o"), available(&limiter, "gpt-4o")), (vec![0], vec![10_000]));
}

#[tokio::test]
async fn spans_of_tracing_middleware_show_outcome_and_no_secret() {
    const SECRET: &str = "s3cr3t";
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let logged = tracing::subscriber::set_default(subscriber);
    let body = CHAT.replace("[]", &format!(r#"[{{"role": "user", "content": "{SECRET}"}}]"#));
    for limiter in [limiter(), scarce()] {
        let client = ClientBuilder::new(client())
            .with(TracingMiddleware::default())
            .with(RateLimitLayer::new(limiter))
            .build();
        let request = client.post(chat_url(USAGE).await).bearer_auth(SECRET).body(body.clone());
        let _ = request.send().await;
    }
    drop(logged);
    let log = log.text();
    assert!(log.contains("http.response.status_code=200"), "{log}");
    assert!(log.contains("the limit allows at most 10"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}
