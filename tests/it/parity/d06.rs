//! Rate limiting of an axum server, over real connections.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::routing::{get, post};
use bytes::Bytes;
use http::HeaderName;
use http_body::Frame;
use paceline::RateLimitLayer;
use paceline::limiter::Limiter;
use paceline::middleware::ActualCost;
use paceline::middleware::respond::Scope;
use paceline::quota::{Cost, Margin, Quota};
use parking_lot::Mutex;
use reqwest::{Client, Response};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

fn client() -> Client {
    paceline_testing::http::client()
}

async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    url
}

fn limiter(key: &str, quota: Quota) -> Limiter {
    Limiter::builder().quota(key, quota).margin(Margin::NONE).build().unwrap()
}

fn text<'a>(response: &'a Response, field: &str) -> Option<&'a str> {
    Some(response.headers().get(field)?.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_forty_concurrent_requests_reach_handler_five_times() {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    let handler = async move || {
        count.fetch_add(1, Ordering::Relaxed);
        "hello"
    };
    let limit = RateLimitLayer::new(limiter("peer:*", Quota::new().rpm(5)));
    let limit = limit.respond().scope(Scope::peer());
    let url = serve(Router::new().route("/", get(handler)).layer(limit)).await;
    let client = client();
    let mut answers = JoinSet::new();
    for _ in 0..40 {
        answers.spawn(client.get(&url).send());
    }
    let mut refused = 0;
    while let Some(answer) = answers.join_next().await {
        let answer = answer.unwrap().unwrap();
        assert_eq!(text(&answer, "ratelimit-policy"), Some("\"peer-rpm\";q=5;w=60"));
        assert!(text(&answer, "ratelimit").unwrap().starts_with("\"peer-rpm\";r="));
        if answer.status() == 429 {
            refused += 1;
            let seconds = text(&answer, "retry-after").unwrap().to_owned();
            let body: serde_json::Value =
                serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
            assert_eq!(body["retry_after"].to_string(), seconds);
            assert_eq!(body["violated-policies"], serde_json::json!(["peer-rpm"]));
        } else {
            assert_eq!((answer.status().as_u16(), text(&answer, "retry-after")), (200, None));
        }
    }
    assert_eq!((reached.load(Ordering::Relaxed), refused), (5, 35));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_streams_pass_frame_by_frame_and_hold_concurrency() {
    let (frames, receiver) = mpsc::channel::<Bytes>(1);
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let handler = async move || match receiver.lock().take() {
        Some(receiver) => Body::new(Received(receiver)),
        None => Body::empty(),
    };
    let guard = limiter("service", Quota::new().concurrency(1));
    let limit = RateLimitLayer::new(guard.clone()).respond();
    let url = serve(Router::new().route("/", get(handler)).layer(limit)).await;
    let client = client();
    let mut streamed = client.get(&url).send().await.unwrap();
    assert_eq!(streamed.content_length(), None);
    // Each part is read before the next is sent.
    for part in ["data: 1\n\n", "data: 2\n\n"] {
        frames.send(part.into()).await.unwrap();
        assert_eq!(streamed.chunk().await.unwrap().unwrap(), part);
    }
    let refused = client.get(&url).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), text(&refused, "retry-after")), (429, Some("1")));
    drop(frames);
    assert_eq!(streamed.chunk().await.unwrap(), None);
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
}

/// A body of the parts received from a channel.
struct Received(mpsc::Receiver<Bytes>);

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(cx).map(|data| data.map(Frame::data).map(Ok))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_service_errors_pass_unchanged_and_count() {
    let handler = async || (StatusCode::BAD_GATEWAY, [("x-cause", "upstream")], "upstream failed");
    let limit = RateLimitLayer::new(limiter("service", Quota::new().rpm(2))).respond();
    let url = serve(Router::new().route("/", get(handler)).layer(limit)).await;
    let client = client();
    for path in ["/", "/nowhere", "/"] {
        let answer = client.get(format!("{url}{path}")).send().await.unwrap();
        match path {
            "/nowhere" => assert_eq!(answer.status(), 404),
            _ if answer.status() == 502 => {
                assert_eq!(text(&answer, "x-cause"), Some("upstream"));
                assert_eq!(
                    text(&answer, "ratelimit").map(|r| &r[..17]),
                    Some("\"service-rpm\";r=1")
                );
                assert_eq!(answer.text().await.unwrap(), "upstream failed");
            }
            _ => assert_eq!(answer.status(), 429),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d06_endpoints_are_limited_by_tokens_per_api_key() {
    // The handler uses one token per byte of the request; 40 are reserved.
    let handler = async |body: Bytes| {
        let cost = Cost::new().tokens(body.len() as u64);
        (axum::Extension(ActualCost::of(cost)), "done")
    };
    let guard = limiter("x-api-key:*", Quota::new().tpm(100));
    let by_key = Scope::header(HeaderName::from_static("x-api-key"));
    let limit = RateLimitLayer::new(guard.clone()).respond();
    let limit = limit.scope(by_key.clone()).cost(|_| Cost::new().tokens(40));
    let url = serve(Router::new().route("/", post(handler)).layer(limit)).await;
    let client = client();
    let send = async |api_key: &'static str, bytes: usize| {
        let request = client.post(&url).header("x-api-key", api_key).body("x".repeat(bytes));
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.text().await.unwrap();
        assert!(!body.contains(api_key) && !body.contains("\"key\""), "{body}");
        status
    };
    assert_eq!(send("s3cr3t-1", 10).await, 200);
    let left = |api_key: &str| guard.stats(&by_key.key_of(api_key)).limits[0].available;
    assert_eq!(left("s3cr3t-1"), 90);
    assert_eq!(send("s3cr3t-1", 60).await, 200);
    assert_eq!(send("s3cr3t-1", 1).await, 429);
    assert_eq!(send("s3cr3t-2", 1).await, 200);
    assert_eq!((left("s3cr3t-1"), left("s3cr3t-2")), (30, 99));
}
