//! Adds `include_usage` to streams and leaves the rest of a request unchanged.

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use paceline::middleware::{BufferBodyLayer, BufferedBody, IncludeUsageLayer, RateLimitLayer};
use paceline::quota::{Dimension, Quota};
use parking_lot::Mutex;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use super::inner::{Frames, Strict};
use super::{available, builder, read};

/// Returns the body and the content length sent for a request with this body to this path.
async fn sent(path: &str, body: &str) -> (String, String) {
    let seen = Mutex::new(None);
    let inner = service_fn(|request: Request<String>| {
        let size = request.headers()[CONTENT_LENGTH].to_str().unwrap().to_owned();
        *seen.lock() = Some((request.into_body(), size));
        std::future::ready(Ok::<_, std::convert::Infallible>(()))
    });
    let request = Request::post(path).header(CONTENT_LENGTH, body.len());
    let request = request.body(body.to_owned()).unwrap();
    IncludeUsageLayer::new().layer(inner).oneshot(request).await.unwrap();
    seen.into_inner().unwrap()
}

const CHAT: &str = "https://api.openai.com/v1/chat/completions";

#[tokio::test]
async fn stream_without_usage_option_gets_option() {
    let whole = r#""stream_options":{"include_usage":true},"#;
    for (body, begin) in [
        (r#"{"stream": true, "messages": [{"content": "{\"stream\": 1}"}]}"#, 1),
        (" {\n \"n\":1e400,\"stream\":true }\n", 2),
        (r#"{"x": {"stream_options": 1}, "stream" : true}"#, 1),
    ] {
        let (sent, size) = sent(CHAT, body).await;
        assert_eq!(sent, [&body[..begin], whole, &body[begin..]].concat());
        assert_eq!(size, sent.len().to_string());
    }
}

#[tokio::test]
async fn stream_with_other_options_keeps_options() {
    for (options, expected) in [
        ("{}", r#"{"include_usage":true}"#),
        ("{ }", r#"{"include_usage":true }"#),
        ("null", r#"{"include_usage":true}"#),
        (r#"{"a": [1]}"#, r#"{"include_usage":true,"a": [1]}"#),
    ] {
        let body = |options| format!(r#"{{"stream":true, "stream_options": {options} ,"n":1}}"#);
        assert_eq!(sent("/v1/completions", &body(options)).await.0, body(expected));
    }
}

#[tokio::test]
async fn request_with_explicit_usage_option_is_unchanged() {
    for body in [
        r#"{"stream": true, "stream_options": {"include_usage": false}}"#,
        r#"{"stream": true, "stream_options": {"include_usage": true}}"#,
        r#"{"stream": true, "stream_options": {"include_usage": null}}"#,
        r#"{"stream": false}"#,
        r#"{"stream": "yes"}"#,
        r#"{"model": "gpt-4o"}"#,
        r#"{"stream": true, "stream": true}"#,
        r#"{"stream": true, "stream_options": [1]}"#,
        r#"[true, {"a": 1}]"#,
        r#"{"stream": true"#,
        "{}",
        "",
    ] {
        assert_eq!(sent(CHAT, body).await, (body.to_owned(), body.len().to_string()));
    }
    let stream = r#"{"stream": true}"#;
    assert_eq!(sent("/v1/responses", stream).await.0, stream);
}

#[test]
fn request_usage_replaces_an_option_that_is_not_true() {
    for (own, is_changed) in [("false", true), ("null", true), ("true", false)] {
        let body = |own: &str| {
            format!(r#"{{"stream": true, "stream_options": {{"a": 1, "include_usage": {own} }} }}"#)
        };
        let mut request = Request::post(CHAT).body(body(own)).unwrap();
        assert_eq!(paceline::middleware::request_usage(&mut request), is_changed, "{own}");
        assert_eq!(*request.body(), body("true"));
    }
}

#[tokio::test]
async fn request_with_body_digest_is_unchanged() {
    let stream = r#"{"stream": true}"#;
    for name in ["content-digest", "digest", "content-md5", "x-amz-content-sha256"] {
        let inner = service_fn(|request: Request<String>| {
            std::future::ready(Ok::<_, std::convert::Infallible>(request.into_body()))
        });
        let request = Request::post(CHAT).header(name, "x").body(stream.to_owned()).unwrap();
        let sent = IncludeUsageLayer::new().layer(inner).oneshot(request).await.unwrap();
        assert_eq!(sent, stream, "{name}");
    }
}

#[tokio::test]
async fn request_with_trailers_is_unchanged() {
    let trailers: HeaderMap =
        [("x-end".parse().unwrap(), "1".parse().unwrap())].into_iter().collect();
    let body = Frames::from(r#"{"stream": true}"#).trailers(trailers.clone());
    let client = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .layer(IncludeUsageLayer::new())
        .service_fn(|request: Request<BufferedBody<Frames>>| request.into_body().collect());
    let sent = client.oneshot(Request::post(CHAT).body(body).unwrap()).await.unwrap();
    assert_eq!(sent.trailers(), Some(&trailers));
    assert_eq!(sent.to_bytes(), r#"{"stream": true}"#);
}

#[tokio::test(start_paused = true)]
async fn reservation_settles_by_requested_usage() {
    let limiter = builder()
        .provider(paceline::provider::COMPATIBLE_USAGE)
        .quota("m", Quota::new().tpm(10_000))
        .build()
        .unwrap();
    let provider = Strict::new(|request: Request<String>| async move {
        let usage = r#"{"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 1}}"#;
        let with_usage = request.into_body().contains("include_usage");
        let event =
            if with_usage { format!("data: {usage}\n\n") } else { "data: {}\n\n".to_owned() };
        Ok(Frames::default().data(event).into_response())
    });
    let layer = RateLimitLayer::new(limiter.clone());
    let client = IncludeUsageLayer::new().layer(layer.layer(provider));
    let body = r#"{"model": "m", "stream": true, "max_tokens": 500}"#.to_owned();
    let response = client.oneshot(Request::post(CHAT).body(body).unwrap()).await.unwrap();
    read(response).await.unwrap();
    assert_eq!(available(&limiter, "m"), [10_000 - 3]);
    assert_eq!(limiter.stats("m").limits[0].dimension, Dimension::Tokens);
}
