//! Token counts by the provider's API.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::HeaderValue;
use paceline::middleware::{SendCountError, count_tokens};
use paceline::provider::count_tokens::{self as count, CountTokensError};
use paceline::provider::{ANTHROPIC, GEMINI, OPENAI, Profile};
use tokio::net::TcpListener;

#[tokio::test]
async fn g17_each_provider_counts_a_prompt() {
    let app = Router::new()
        .route("/v1beta/models/{call}", post(|| async { r#"{"totalTokens": 7}"# }))
        .route("/v1/messages/count_tokens", post(|| async { r#"{"input_tokens": 8}"# }))
        .route(
            "/v1/responses/input_tokens",
            post(|| async { r#"{"object": "response.input_tokens", "input_tokens": 9}"# }),
        );
    let base = serve(app).await;
    for (profile, path, body, tokens) in [
        (
            GEMINI,
            "v1beta/models/gemini-2.5-flash:generateContent",
            r#"{"contents": [{"parts": [{"text": "Hello"}]}]}"#,
            7,
        ),
        (ANTHROPIC, "v1/messages", r#"{"model": "m", "messages": []}"#, 8),
        (OPENAI, "v1/responses", r#"{"model": "m", "input": "Hello"}"#, 9),
        (OPENAI, "v1/chat/completions", r#"{"model": "m", "messages": []}"#, 9),
    ] {
        let counted = ask(profile, &format!("{base}/{path}"), body).await;
        assert_eq!(counted.unwrap(), tokens, "{path}");
    }
}

#[tokio::test]
async fn g17_refusal_is_read_to_8_kib_and_reported() {
    let refuse = |request: Request| async move {
        assert_eq!(request.headers()[header::AUTHORIZATION], SECRET);
        let long = "x".repeat(200_000);
        let body = format!(r#"{{"error": {{"code": "model_not_found", "message": "{long}"}}}}"#);
        (StatusCode::NOT_FOUND, body).into_response()
    };
    let error = refused(Router::new().fallback(refuse)).await;
    let SendCountError::Answer(CountTokensError::Refused { status, error: api_error }) = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((*status, api_error.code()), (StatusCode::NOT_FOUND, Some("model_not_found")));
    assert!(error.to_string().starts_with(
        "the provider refused to count tokens: HTTP 404 Not Found: model_not_found: xxx"
    ));
    assert!(error.to_string().len() < 500);
}

#[tokio::test]
async fn g17_response_beyond_1_mib_is_an_error() {
    let long = || async { Response::new("[".repeat(count::LONGEST_ANSWER + 1)) };
    let error = refused(Router::new().fallback(long)).await;
    let most = count::LONGEST_ANSWER;
    assert!(
        matches!(error, SendCountError::Answer(CountTokensError::TooLong { limit: m }) if m == most)
    );
}

#[tokio::test]
async fn g17_error_contains_no_api_key() {
    // No server listens on this port.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let url = format!("{base}/v1/responses?key={SECRET}");
    let error = ask(OPENAI, &url, r#"{"input": "Hello"}"#).await.unwrap_err();
    assert!(matches!(error, SendCountError::Send(_)));
    for shown in [format!("{error}"), format!("{error:?}")] {
        assert!(!shown.contains(SECRET) && !shown.contains("input_tokens"), "{shown}");
    }
}

async fn refused(app: Router) -> SendCountError {
    let url = format!("{}/v1/responses", serve(app).await);
    ask(OPENAI, &url, r#"{"input": "Hello"}"#).await.unwrap_err()
}

async fn ask(profile: Profile, url: &str, body: &str) -> Result<u64, SendCountError> {
    let mut request = count::request(profile, url, body.as_bytes()).unwrap();
    request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(SECRET));
    count_tokens(&super::reqwest_client(), request).await
}

/// Starts a server and returns its base URL.
async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    base
}

const SECRET: &str = "sk-secret";
