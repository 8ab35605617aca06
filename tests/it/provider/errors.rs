//! What failures mean.

use http::{HeaderMap, StatusCode};
use tollgate::provider::{ApiError, Class, OPENAI, Scanner};

#[test]
fn a_status_and_its_error_make_a_class() {
    for (status, body, class) in [
        (200, "", Class::Ok),
        (304, "", Class::Ok),
        (429, "", Class::Transient),
        (429, r#"{"error":{"code":"rate_limit_exceeded","type":"tokens"}}"#, Class::Transient),
        (429, r#"{"error":{"code":"slow_down"}}"#, Class::Transient),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, Class::Terminal),
        (429, r#"{"error":{"type":"insufficient_quota","code":null}}"#, Class::Terminal),
        (429, r#"{"error":{"code":"organization_spend_limit_exceeded"}}"#, Class::Terminal),
        (429, r#"{"error":{"code":"credit_balance_exhausted"}}"#, Class::Terminal),
        (
            429,
            r#"{"error":{"code":"rate_limit_exceeded","message":"on requests per day (RPD): Limit 200, Used 200"}}"#,
            Class::UntilReset,
        ),
        (503, r#"{"error":{"code":"server_is_overloaded"}}"#, Class::Transient),
        (408, "", Class::Transient),
        (500, "<html>", Class::Transient),
        (529, "", Class::Transient),
        (400, r#"{"error":{"type":"invalid_request_error"}}"#, Class::Terminal),
        (401, "", Class::Terminal),
        (402, "", Class::Terminal),
        (403, "", Class::Terminal),
        (404, "", Class::Terminal),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let got = OPENAI.classify(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(got, class, "{status} {body}");
    }
}

#[test]
fn the_provider_may_say_whether_to_try_again() {
    let class = |status, value: &'static str| {
        let headers = [("x-should-retry".parse().unwrap(), value.parse().unwrap())];
        OPENAI.classify(status, &headers.into_iter().collect(), b"")
    };
    assert_eq!(class(StatusCode::BAD_REQUEST, "true"), Class::Transient);
    assert_eq!(class(StatusCode::SERVICE_UNAVAILABLE, "false"), Class::Terminal);
}

#[test]
fn some_errors_stop_the_whole_run() {
    let stops = |status, body: &str| {
        let error = ApiError::read(body.as_bytes()).unwrap_or_default();
        OPENAI.is_account_wide(status, &error)
    };
    assert!(stops(StatusCode::UNAUTHORIZED, ""));
    assert!(stops(StatusCode::TOO_MANY_REQUESTS, r#"{"error":{"code":"insufficient_quota"}}"#));
    assert!(!stops(StatusCode::TOO_MANY_REQUESTS, r#"{"error":{"code":"rate_limit_exceeded"}}"#));
    assert!(!stops(StatusCode::BAD_REQUEST, r#"{"error":{"code":"invalid_value"}}"#));
}

#[test]
fn an_error_in_a_stream_has_a_class() {
    let class = |body: &str| {
        let mut scanner = Scanner::new(OPENAI, None);
        scanner.feed(body.as_bytes());
        OPENAI.classify_in_band(&scanner.finish().error.unwrap())
    };
    assert_eq!(class(r#"data: {"error":{"code":"rate_limit_exceeded"}}"#), Class::Transient);
    assert_eq!(class(r#"data: {"error":{"code":502,"message":"upstream"}}"#), Class::Transient);
    assert_eq!(class(r#"data: {"error":{"code":"insufficient_quota"}}"#), Class::Terminal);
    assert_eq!(class(r#"data: {"error":{"code":"invalid_prompt"}}"#), Class::Terminal);
}

#[test]
fn error_bodies_of_several_shapes_are_read() {
    for (body, code, kind, message) in [
        (r#"{"error":{"code":"c","type":"k","message":"m"}}"#, Some("c"), Some("k"), "m"),
        (
            r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]"#,
            Some("429"),
            Some("RESOURCE_EXHAUSTED"),
            "",
        ),
        (
            r#"{"object":"error","message":"m","type":"BadRequest","code":400}"#,
            Some("400"),
            Some("BadRequest"),
            "m",
        ),
        (r#"{"error":"m"}"#, None, None, "m"),
        (r#"{"detail":"m"}"#, None, None, "m"),
        (r#"{"error":{"code":"c","message":"cut o"#, Some("c"), None, "cut o"),
    ] {
        let error = ApiError::read(body.as_bytes()).unwrap_or_else(|| panic!("{body}"));
        assert_eq!((error.code(), error.kind(), error.message()), (code, kind, message), "{body}");
    }
    for body in ["", "<html>", "{}", "null", "{\"error\":null}"] {
        assert_eq!(ApiError::read(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn an_error_shows_no_more_than_the_beginning_of_its_message() {
    let secret = "é".repeat(290) + &"x".repeat(50) + "the end of the prompt";
    let body = format!(r#"{{"error":{{"code":"bad","message":"{secret}"}}}}"#);
    let error = ApiError::read(body.as_bytes()).unwrap();
    assert_eq!(error.message(), secret);
    for shown in [format!("{error}"), format!("{error:?}")] {
        assert!(shown.contains("bad") && shown.contains('é'), "{shown}");
        assert!(!shown.contains("prompt"), "{shown}");
    }
}
