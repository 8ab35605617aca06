//! Runs `examples/axum_server.rs` over real connections.

#[path = "../../../../examples/axum_server.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod axum_server;

use std::net::SocketAddr;

use http::HeaderName;
use paceline::middleware::respond::Scope;
use tokio::task::JoinSet;

use super::{field, problem};

async fn serve(client: Scope) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let app = axum_server::app(client).unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    url
}

/// Sends forty concurrent requests; returns the numbers of admitted and refused requests.
async fn send_forty(url: &str, api_key: &'static str, name: &'static str) -> [usize; 2] {
    let client = crate::middleware::reqwest::client();
    let mut answers = JoinSet::new();
    for _ in 0..40 {
        let request = client.get(url).header("x-api-key", api_key);
        answers.spawn(async move { request.send().await.unwrap() });
    }
    let mut counts = [0, 0];
    while let Some(answer) = answers.join_next().await {
        let answer = answer.unwrap();
        let headers = answer.headers().clone();
        let policy = format!("\"{name}-rpm\";q=5;w=60");
        assert!(field(&headers, "ratelimit-policy").starts_with(&policy), "{headers:?}");
        let limit = format!("\"{name}-rpm\";r=");
        assert!(field(&headers, "ratelimit").starts_with(&limit), "{headers:?}");
        if answer.status() == 200 {
            counts[0] += 1;
            assert!(!headers.contains_key("retry-after"));
            assert_eq!(answer.text().await.unwrap(), "Hello, world!");
        } else {
            counts[1] += 1;
            assert_eq!(answer.status(), 429);
            let retry_after: u64 = field(&headers, "retry-after").parse().unwrap();
            assert!((1..=60).contains(&retry_after), "{retry_after}");
            assert_eq!(field(&headers, "content-type"), "application/problem+json");
            let body = problem(&answer.bytes().await.unwrap());
            assert_eq!((&body["code"], &body["status"]), (&"rpm_exceeded".into(), &429.into()));
            assert_eq!(body["retry_after"], retry_after);
            assert!(!body.to_string().contains(api_key));
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_concurrent_requests_admit_exactly_five() {
    let url = serve(Scope::peer()).await;
    assert_eq!(send_forty(&url, "any", "peer").await, [5, 35]);
    assert_eq!(send_forty(&url, "other", "peer").await, [0, 40]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_keys_have_separate_limits() {
    let url = serve(Scope::header(HeaderName::from_static("x-api-key"))).await;
    for api_key in ["s3cr3t-1", "s3cr3t-2"] {
        assert_eq!(send_forty(&url, api_key, "x-api-key").await, [5, 35]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn summaries_are_charged_actual_usage() {
    let url = format!("{}summary", serve(Scope::peer()).await);
    let client = crate::middleware::reqwest::client();
    let ask = async |text: String| client.post(&url).body(text).send().await.unwrap();
    let text = |length: usize| format!("{:.<length$}", "One sentence.");
    // Reserves 6,000 and 1,000 for the summary out of 10,000 tokens; uses 6,004.
    let answer = ask(text(24_000)).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.text().await.unwrap(), "One sentence.");
    // Of the remaining 3,996, a request that reserves one token more is refused.
    let refused = ask(text(4 * 2_997)).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(problem(&refused.bytes().await.unwrap())["code"], "tpm_exceeded");
    assert_eq!(ask(text(4 * 2_996)).await.status(), 200);
    let never = ask(text(4 * 9_001)).await;
    assert_eq!(problem(&never.bytes().await.unwrap())["code"], "exceeds_capacity");
}
