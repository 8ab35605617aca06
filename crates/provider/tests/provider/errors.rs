//! Classes of failures.

use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::quota::Dimension;
use paceline_provider::{
    ANTHROPIC, ApiError, BEDROCK, COHERE, Class, DASHSCOPE, GEMINI, GROQ, OPENAI, OPENROUTER,
    Profile, Refusal, RefusalKind, Scanner, VERTEX_ANTHROPIC,
};

use super::headers::headers;

/// Reads a refusal without headers.
fn refusal(profile: Profile, status: u16, body: &str) -> Option<Refusal> {
    let status = StatusCode::from_u16(status).unwrap();
    profile.refusal(status, &HeaderMap::new(), body.as_bytes(), Timestamp::UNIX_EPOCH)
}

#[test]
fn status_and_error_determine_the_class() {
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
fn x_should_retry_header_overrides_class() {
    let class = |status, value: &'static str| {
        let headers = [("x-should-retry".parse().unwrap(), value.parse().unwrap())];
        OPENAI.classify(status, &headers.into_iter().collect(), b"")
    };
    assert_eq!(class(StatusCode::BAD_REQUEST, "true"), Class::Transient);
    assert_eq!(class(StatusCode::SERVICE_UNAVAILABLE, "false"), Class::Terminal);
}

#[test]
fn exhausted_quota_is_classified_by_window() {
    let gemini = |ids: &[&str]| {
        let violations: Vec<_> = ids.iter().map(|id| format!(r#"{{"quotaId": "{id}"}}"#)).collect();
        let violations = violations.join(",");
        format!(
            r#"[{{"error": {{"code": 429, "message": "You exceeded your current quota", "status":
            "RESOURCE_EXHAUSTED", "details": [{{"violations": [{violations}]}}]}}}}]"#
        )
    };
    let groq = r#"{"error":{"message":"Rate limit reached for model `x` on requests per day (RPD): Limit 1000, Used 1000, Requested 1. Please try again in 1m26.4s.","type":"requests","code":"rate_limit_exceeded"}}"#;
    let cohere =
        r#"{"message":"You are using a Trial key, which is limited to 1000 API calls / month."}"#;
    let minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
    let day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    let openrouter = r#"{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits","code":429}}"#;
    for (profile, body, class) in [
        (GEMINI, gemini(&[minute]), Class::Transient),
        (GEMINI, gemini(&[day]), Class::UntilReset),
        (GEMINI, gemini(&[minute, day]), Class::UntilReset),
        (GEMINI, gemini(&[]), Class::Transient),
        (GROQ, groq.to_owned(), Class::UntilReset),
        (GROQ, groq.replace("requests per day (RPD)", "tokens per minute (TPM)"), Class::Transient),
        (COHERE, cohere.to_owned(), Class::UntilReset),
        (COHERE, cohere.replace("month", "minute"), Class::Transient),
        (OPENROUTER, openrouter.to_owned(), Class::UntilReset),
        (OPENROUTER, openrouter.replace("day", "min"), Class::Transient),
        (
            BEDROCK,
            r#"{"message":"Too many tokens per day, please wait"}"#.into(),
            Class::UntilReset,
        ),
    ] {
        let status = StatusCode::TOO_MANY_REQUESTS;
        assert_eq!(profile.classify(status, &HeaderMap::new(), body.as_bytes()), class, "{body}");
    }
}

#[test]
fn anthropic_429_without_retry_after_is_transient() {
    let body = br#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#;
    let class = |profile: Profile, status, pairs| {
        profile.classify(StatusCode::from_u16(status).unwrap(), &headers(pairs), body)
    };
    assert_eq!(class(ANTHROPIC, 429, &[("retry-after", "12")]), Class::Transient);
    assert_eq!(class(ANTHROPIC, 429, &[("retry-after-ms", "12")]), Class::Transient);
    assert_eq!(class(ANTHROPIC, 429, &[("x-should-retry", "true")]), Class::Transient);
    assert_eq!(class(ANTHROPIC, 429, &[("x-should-retry", "false")]), Class::Terminal);
    assert_eq!(class(ANTHROPIC, 429, &[]), Class::Transient);
    assert_eq!(class(ANTHROPIC, 529, &[]), Class::Transient);
    assert_eq!(class(VERTEX_ANTHROPIC, 429, &[]), Class::Transient);
    assert_eq!(class(OPENAI, 429, &[]), Class::Transient);
}

#[test]
fn bedrock_error_type_is_read_from_header_or_member() {
    let class = |status, kind: &str, body: &str| {
        let status = StatusCode::from_u16(status).unwrap();
        let headers = headers(&[("x-amzn-errortype", kind)]);
        BEDROCK.classify(status, &headers, body.as_bytes())
    };
    let slow = r#"{"message":"Too many tokens, please wait before trying again."}"#;
    assert_eq!(class(429, "ThrottlingException", slow), Class::Transient);
    let kind_and_url = "ThrottlingException:http://internal.amazon.com/coral/";
    assert_eq!(class(400, kind_and_url, r#"{"message":"Rate exceeded"}"#), Class::Transient);
    assert_eq!(class(400, "", slow), Class::Transient);
    let named = r#"{"__type":"com.amazon.coral.service#ThrottlingException","message":"slow"}"#;
    assert_eq!(class(400, "", named), Class::Transient);
    assert_eq!(class(424, "ModelErrorException", "{}"), Class::Transient);
    assert_eq!(class(503, "ServiceUnavailableException", "{}"), Class::Transient);
    assert_eq!(class(400, "ValidationException", r#"{"message":"m"}"#), Class::Terminal);
    assert_eq!(class(403, "AccessDeniedException", r#"{"Message":"m"}"#), Class::Terminal);
    let wrong =
        r#"{"message":"Malformed input request, please reformat your input and try again."}"#;
    assert_eq!(class(400, "", wrong), Class::Terminal);
}

#[test]
fn refusal_names_dimension_of_reached_limit() {
    let dimension = |body: &str| refusal(OPENAI, 429, body).unwrap().dimension;
    let message = |text: &str| dimension(&format!(r#"{{"error":{{"message":"{text}"}}}}"#));
    let images = Some(Dimension::custom("input_images"));
    let quota = |id: &str| dimension(&format!(r#"{{"error":{{"message":"m","quotaId":"{id}"}}}}"#));
    for (named, expected) in [
        (
            dimension(r#"{"error":{"type":"tokens","message":"on requests"}}"#),
            Some(Dimension::Tokens),
        ),
        (dimension(r#"{"error":{"type":"requests"}}"#), Some(Dimension::Requests)),
        (dimension(r#"{"error":{"type":"input-images"}}"#), images),
        (dimension(r#"{"code":"token_quota_exceeded","message":"m"}"#), Some(Dimension::Tokens)),
        (quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), Some(Dimension::Requests)),
        (quota("GenerateContentInputTokensPerModelPerMinute-FreeTier"), Some(Dimension::Tokens)),
        (quota("Something"), None),
        (message("on tokens per min (TPM): Limit 10000, Used 8782"), Some(Dimension::Tokens)),
        (message("on requests per day (RPD): Limit 200"), Some(Dimension::Requests)),
        (message("rate limit of 40,000 input tokens per minute"), Some(Dimension::InputTokens)),
        (message("rate limit of 8,000 output tokens per minute"), Some(Dimension::OutputTokens)),
        (message("Number of concurrent connections has exceeded"), Some(Dimension::Concurrency)),
        (message("have exceeded token rate limit of your S0 tier"), Some(Dimension::Tokens)),
        (message("have exceeded call rate limit of your S0 tier"), Some(Dimension::Requests)),
        (message("Too many tokens, please wait"), Some(Dimension::Tokens)),
        (message("You exceeded your current quota"), None),
    ] {
        assert_eq!(named, expected);
    }
}

/// A 429 that disappeared when the request was sent again (github.com/hawkxtreme/mini-ai-1c issue 23). "Allocated
/// quota exceeded or You exceeded your current quota: this indicates that the tokens per minute (TPM) limit was
/// triggered": help.aliyun.com/en/model-studio/rate-limit. The code is that of an empty account at OpenAI.
#[test]
fn dashscope_429_of_tokens_per_minute_is_transient() {
    let body = br#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details. For details, see: https://help.aliyun.com/zh/model-studio/error-code#token-limit","param":null,"type":"insufficient_quota"},"request_id":""}"#;
    let text = str::from_utf8(body).unwrap();
    let status = StatusCode::TOO_MANY_REQUESTS;
    let read = refusal(DASHSCOPE, 429, text).unwrap();
    assert_eq!((read.kind, read.dimension), (RefusalKind::Rate, Some(Dimension::Tokens)));
    assert_eq!(DASHSCOPE.classify(status, &HeaderMap::new(), body), Class::Transient);
    assert_eq!(OPENAI.classify(status, &HeaderMap::new(), body), Class::Terminal);
    let of = |message: &str| {
        let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
        refusal(DASHSCOPE, 429, &body).unwrap().dimension
    };
    assert_eq!(of("Allocated quota exceeded"), Some(Dimension::Tokens));
    assert_eq!(of("Requests rate limit exceeded"), Some(Dimension::Requests));
    assert_eq!(of("You exceeded your current requests list"), Some(Dimension::Requests));
}

#[test]
fn account_errors_are_account_wide() {
    let is_account_wide = |status, body: &str| {
        let refusal = refusal(OPENAI, status, body);
        refusal.is_some_and(|refusal| refusal.kind == RefusalKind::Account)
    };
    assert!(is_account_wide(401, ""));
    assert!(is_account_wide(429, r#"{"error":{"code":"insufficient_quota"}}"#));
    assert!(is_account_wide(
        400,
        r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#
    ));
    assert!(is_account_wide(
        400,
        r#"{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#
    ));
    assert!(!is_account_wide(429, r#"{"error":{"code":"rate_limit_exceeded"}}"#));
    assert!(!is_account_wide(400, r#"{"error":{"code":"invalid_value"}}"#));
}

#[test]
fn error_in_stream_has_a_class() {
    let class = |body: &str| {
        let mut scanner = Scanner::new(OPENAI, None);
        scanner.feed(body.as_bytes());
        OPENAI.classify_in_band(&scanner.finish().error.unwrap())
    };
    assert_eq!(class(r#"data: {"error":{"code":"rate_limit_exceeded"}}"#), Class::Transient);
    assert_eq!(class(r#"data: {"error":{"code":502,"message":"upstream"}}"#), Class::Transient);
    assert_eq!(class(r#"data: {"error":{"code":"insufficient_quota"}}"#), Class::Terminal);
    for at_fault in ["invalid_prompt", "content_filter", "context_length_exceeded"] {
        let body = format!(r#"data: {{"error":{{"code":"{at_fault}"}}}}"#);
        assert_eq!(class(&body), Class::Terminal, "{at_fault}");
    }
    // The request was accepted, and the error doesn't say that it is invalid.
    for other in [r#"{"message":"oh"}"#, r#"{"code":"engine_crashed"}"#, r#"{"type":"x"}"#] {
        assert_eq!(class(&format!(r#"data: {{"error":{other}}}"#)), Class::Transient, "{other}");
    }
    assert_eq!(class(r#"data: {"error":{"type":"overloaded_error"}}"#), Class::Transient);
    assert_eq!(class(r#"data: {"error":{"code":503,"status":"UNAVAILABLE"}}"#), Class::Transient);
    let failed = r#"data: {"type":"response.failed","response":{"error":{"code":"server_error"}}}"#;
    assert_eq!(class(failed), Class::Transient);
    let daily = r#"data: {"error":{"code":"rate_limit_exceeded","message":"requests per day"}}"#;
    assert_eq!(class(daily), Class::UntilReset);
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
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            None,
            Some("overloaded_error"),
            "m",
        ),
        (r#"{"error":{"code":429,"message":"m","metadata":{"raw":"r"}}}"#, Some("429"), None, "m"),
        (r#"{"id":"8bd5","message":"m"}"#, None, None, "m"),
        (r#"{"Message":"m"}"#, None, None, "m"),
        (r#"{"detail":[{"loc":["body"],"msg":"m"}]}"#, None, None, "m"),
        (r#"{"__type":"a.b#Slow:http://c","message":"m"}"#, None, Some("Slow"), "m"),
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
fn error_shows_only_start_of_message() {
    let secret = "é".repeat(290) + &"x".repeat(50) + "the end of the prompt";
    let body = format!(r#"{{"error":{{"code":"bad","message":"{secret}"}}}}"#);
    let error = ApiError::read(body.as_bytes()).unwrap();
    assert_eq!(error.message(), secret);
    for shown in [format!("{error}"), format!("{error:?}")] {
        assert!(shown.contains("bad") && shown.contains('é'), "{shown}");
        assert!(!shown.contains("prompt"), "{shown}");
    }
}
