//! What failed requests are charged.

use http::{HeaderMap, StatusCode};
use paceline_provider::{
    ANTHROPIC, AZURE, ApiError, BEDROCK, COMPATIBLE_USAGE, ErrorRules, FailureCharge, GEMINI, GROQ,
    OPENAI, OPENROUTER, Profile, Rules, VERTEX,
};

use self::FailureCharge::{Request, Reserved, Tokens};

fn charge(profile: Profile, status: u16, headers: &[(&str, &str)], body: &str) -> FailureCharge {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
    profile.failure_charge(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
}

fn error(code: &str) -> String {
    format!(r#"{{"error": {{"code": "{code}", "message": "No"}}}}"#)
}

#[test]
fn status_determines_the_charge_of_a_failure() {
    for profile in [OPENAI, GROQ, BEDROCK, COMPATIBLE_USAGE] {
        let refused = if profile == OPENAI { Tokens } else { Request };
        for (status, expected) in [
            (302, Request),
            (400, Request),
            (401, Request),
            (402, Request),
            (403, Request),
            (404, Request),
            (408, Reserved),
            (413, Request),
            (422, Request),
            (424, Reserved),
            (429, refused),
            (499, Reserved),
            (500, Reserved),
            (502, Reserved),
            (503, refused),
            (504, Reserved),
            (529, refused),
        ] {
            assert_eq!(charge(profile, status, &[], ""), expected, "{profile:?} {status}");
        }
    }
}

#[test]
fn providers_state_which_failures_they_bill() {
    for (profile, status, body, expected) in [
        // A 400 by the content filter or for the length of the input, and a 408, are billed.
        (AZURE, 400, error("content_filter"), Reserved),
        (AZURE, 400, error("context_length_exceeded"), Reserved),
        (AZURE, 400, error("invalid_value"), Request),
        (AZURE, 400, String::new(), Reserved),
        (AZURE, 408, String::new(), Reserved),
        (AZURE, 401, String::new(), Request),
        (AZURE, 429, String::new(), Request),
        // Refused requests count, except where the account or the request is what was refused.
        (OPENAI, 400, String::new(), Request),
        (OPENAI, 429, String::new(), Tokens),
        (OPENAI, 429, error("rate_limit_exceeded"), Tokens),
        (OPENAI, 429, error("insufficient_quota"), Request),
        (OPENAI, 429, error("request_too_large"), Request),
        (OPENAI, 503, error("server_is_overloaded"), Tokens),
        (GEMINI, 429, String::new(), Tokens),
        (GEMINI, 503, String::new(), Tokens),
        (
            GEMINI,
            400,
            r#"{"error": {"status": "INVALID_ARGUMENT", "message": "API key not valid."}}"#.into(),
            Request,
        ),
        (VERTEX, 429, String::new(), Request),
        (ANTHROPIC, 429, error("rate_limit_error"), Request),
        (ANTHROPIC, 529, error("overloaded_error"), Request),
        // 400 and 500 are not billed, and count.
        (GEMINI, 400, String::new(), Tokens),
        (GEMINI, 403, String::new(), Request),
        (GEMINI, 500, String::new(), Tokens),
        // Only successes are billed.
        (VERTEX, 400, String::new(), Request),
        (VERTEX, 504, String::new(), Tokens),
        (ANTHROPIC, 413, String::new(), Request),
        (ANTHROPIC, 500, String::new(), Tokens),
        (OPENROUTER, 502, String::new(), Tokens),
        // Groq returns the generation that failed.
        (GROQ, 400, error("tool_use_failed"), Reserved),
        (GROQ, 400, error("json_validate_failed"), Reserved),
        (GROQ, 404, error("model_not_found"), Request),
    ] {
        assert_eq!(charge(profile, status, &[], &body), expected, "{profile:?} {status} {body}");
    }
}

/// Recorded: a 400 for an image that couldn't be downloaded has 775 tokens taken; errors of validation state no
/// limits.
#[test]
fn admitted_request_of_openai_keeps_its_tokens() {
    let body = error("invalid_image_url");
    let admitted =
        [("x-ratelimit-limit-tokens", "150000000"), ("x-ratelimit-remaining-tokens", "149999225")];
    assert_eq!(charge(OPENAI, 400, &admitted, &body), Tokens);
    assert_eq!(charge(OPENAI, 400, &[], &body), Request);
    // Where the usage is charged, the headers say nothing of this request.
    assert_eq!(charge(COMPATIBLE_USAGE, 400, &admitted, &body), Request);
}

#[test]
fn body_of_a_server_error_may_show_that_it_was_refused() {
    for (body, expected) in [
        (error("server_is_overloaded"), Tokens),
        (error("rate_limit_exceeded"), Tokens),
        (error("insufficient_quota"), Request),
        (error("server_error"), Reserved),
        ("<html>".to_owned(), Reserved),
    ] {
        assert_eq!(charge(OPENAI, 500, &[], &body), expected, "{body}");
    }
}

#[test]
fn errors_in_band_have_the_charge_of_their_status() {
    for (profile, code, expected) in [
        (OPENAI, "rate_limit_exceeded", Tokens),
        (OPENAI, "429", Tokens),
        (ANTHROPIC, "overloaded_error", Request),
        (GROQ, "rate_limit_exceeded", Request),
        (OPENAI, "invalid_prompt", Request),
        (OPENAI, "insufficient_quota", Request),
        (OPENROUTER, "400", Request),
        (OPENAI, "408", Reserved),
        (OPENAI, "server_error", Reserved),
        (AZURE, "content_filter", Reserved),
        (ANTHROPIC, "api_error", Tokens),
    ] {
        let error = ApiError::read(error(code).as_bytes()).unwrap();
        assert_eq!(profile.failure_charge_in_band(&error), expected, "{profile:?} {code}");
    }
}

#[test]
fn custom_rules_set_the_charge_of_failures() {
    let rules = ErrorRules::new().charged_codes(&["too_long"]).counted_statuses(&[422]);
    let acme = Profile::custom(Rules::new("acme-failures").errors(rules)).unwrap();
    let charges = [(400, error("too_long")), (400, error("other")), (422, String::new())];
    let charges = charges.map(|(status, body)| charge(acme, status, &[], &body));
    assert_eq!(charges, [Reserved, Request, Tokens]);
}
