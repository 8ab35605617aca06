//! What refusals mean: answers of providers as users reported them, and others in other words.
//!
//! `tests/data/refusals.jsonl` has the reported answers; `refusals_held_out.jsonl` was written before the reader of
//! refusals, from public documents and issues, to judge it by. `expect` states what each means: the kind (`null` for
//! no refusal), the delay in seconds (`"reset"`: the next midnight of Los Angeles; `"date"`: that in the text;
//! `"*"`: not judged), and the dimension and the limit where the text names them.

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::quota::Dimension;
use paceline_provider::{
    ANTHROPIC, ApiError, GEMINI, OPENAI, Profile, Refusal, RefusalKind, Scanner,
};
use paceline_simulate::{Fault, FaultKind, Provider, Settings};
use proptest::prelude::*;
use serde_json::Value;

/// 2026-09-01 00:00 UTC, the time of the answers.
const NOW: Timestamp = Timestamp::from_unix_secs(1_788_220_800);

/// The next midnight in Los Angeles: 07:00 UTC.
const MIDNIGHT: Timestamp = Timestamp::from_unix_secs(1_788_220_800 + 7 * 3_600);

#[test]
fn reported_refusals_mean_what_was_found() {
    check(TABLES[0]);
}

#[test]
fn refusals_in_other_words_mean_what_they_say() {
    check(TABLES[1]);
}

/// The second part of the answers that were written before: the words of public sources.
#[test]
fn refusals_in_words_of_public_sources_are_read() {
    check(TABLES[2]);
}

/// Answers that were written to find what is read wrong, and delays in many words.
#[test]
fn refusals_that_were_read_wrong_are_read() {
    check(TABLES[3]);
}

/// Answers that were written after that, without a look at the reader.
#[test]
fn refusals_written_afterwards_are_read() {
    check(TABLES[4]);
}

#[test]
fn simulated_refusals_are_of_their_kinds() {
    let kinds = [
        (FaultKind::RateLimited, RefusalKind::Rate),
        (FaultKind::TooLarge, RefusalKind::Request),
        (FaultKind::InsufficientQuota, RefusalKind::Account),
        (FaultKind::DailyLimit, RefusalKind::Window),
        (FaultKind::Overloaded, RefusalKind::Capacity),
    ];
    let body = br#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}],
        "contents": [{"parts": [{"text": "Hi"}]}]}"#;
    let formats = [
        (OPENAI, "/v1/chat/completions"),
        (ANTHROPIC, "/v1/messages"),
        (GEMINI, "/v1beta/models/m:generateContent"),
    ];
    for (profile, path) in formats {
        for (fault, kind) in kinds {
            let settings = Settings::default().with_fault(Fault::share(1.0, fault));
            let reply = Provider::new(settings).receive(0, path, body);
            let header = |(name, value): &(&'static str, String)| {
                (HeaderName::from_static(name), value.parse().expect("a header value"))
            };
            let headers: HeaderMap = reply.headers.iter().map(header).collect();
            let status = StatusCode::from_u16(reply.status).expect("a status");
            let answer = reply.body.bytes();
            let refusal = profile.refusal(status, &headers, &answer, NOW);
            let found = refusal.map(|refusal| refusal.kind);
            assert_eq!(found, Some(kind), "{path}: {}", String::from_utf8_lossy(&answer));
        }
    }
}

/// Errors that are no refusals, although they have words of refusals.
#[test]
fn failures_for_other_reasons_are_no_refusals() {
    for (status, message) in [
        (400, "The request was blocked because the user prompt violates the content policy."),
        (400, "The following tools were disabled for your organization: web_search"),
        (400, "tools: maximum number of tools is 128, got 130"),
        (400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"),
        (403, "You are not allowed to sample from this model"),
        (404, "No endpoints found that support tool use."),
        (408, "Request timed out after 60 seconds, please retry your request"),
        (500, "The request took too long"),
        (502, "Bad gateway"),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        let status = StatusCode::from_u16(status).expect("a status");
        let refusal =
            Profile::find("https://h").refusal(status, &HeaderMap::new(), body.as_bytes(), NOW);
        assert_eq!(refusal, None, "{message}");
    }
}

/// Returns the delay of a 429 with this message.
fn delay_of(message: &str) -> Option<Duration> {
    let body = serde_json::json!({"error": {"message": message}}).to_string();
    let status = StatusCode::TOO_MANY_REQUESTS;
    Profile::find("https://h").refusal(status, &HeaderMap::new(), body.as_bytes(), NOW)?.delay
}

/// Words without an announcement of a delay.
const WORDS: &[&str] = &[
    "limit",
    "100",
    "per",
    "60",
    "seconds",
    "gpt-4",
    "takes",
    "30s",
    "tokens",
    "rate",
    "exceeded",
    "for",
    "in",
    "after",
    "the",
    "5m",
    "2026-09-04",
    "19:01:25",
    "at",
    "requests.",
    "last",
    "hours",
    "1h2m",
];

/// Words that announce a delay, without a number.
const ANNOUNCEMENTS: &[&str] = &[
    "try again",
    "in",
    "after",
    "later",
    "wait",
    "reset",
    "resets",
    "at",
    "minutes",
    "seconds",
    "a",
    "few",
    "moment.",
    "retry",
    "soon",
    "until",
    "tomorrow",
    "available",
];

proptest! {
    #[test]
    fn text_without_announced_delay_has_none(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..30),
        announcements in prop::collection::vec(prop::sample::select(ANNOUNCEMENTS), 0..30),
    ) {
        prop_assert_eq!(delay_of(&words.join(" ")), None);
        prop_assert_eq!(delay_of(&announcements.join(" ")), None);
    }

    #[test]
    fn announced_delay_is_the_one_in_the_text(
        before in prop::collection::vec(prop::sample::select(WORDS), 0..10),
        announcement in prop::sample::select(&["Please try again in", "retry after", "wait", "It resets in"][..]),
        seconds in 1_u64..3_600,
        unit in prop::sample::select(&["s", " seconds", " sec"][..]),
        after in prop::collection::vec(prop::sample::select(WORDS), 0..10),
    ) {
        let (before, after) = (before.join(" "), after.join(" "));
        let message = format!("{before}. {announcement} {seconds}{unit}. {after}");
        prop_assert_eq!(delay_of(&message), Some(Duration::from_secs(seconds)), "{}", message);
    }
}

fn check(rows: &str) {
    let rows = rows.lines().map(|row| serde_json::from_str(row).expect("a row of JSON"));
    let rows: Vec<Value> = rows.collect();
    let wrong: Vec<String> = rows.iter().filter_map(|row| judge(row).err()).collect();
    assert!(rows.len() > 50);
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Compares a row with the refusal that is read from it.
fn judge(row: &Value) -> Result<(), String> {
    let (refusal, expect) = (read(row), &row["expect"]);
    let found = refusal.as_ref();
    let kind = found.map(|refusal| refusal.kind.as_str());
    let delay = found.and_then(|refusal| refusal.delay);
    let dimension = found.and_then(|refusal| refusal.dimension.as_ref()).map(Dimension::as_str);
    let is_right = kind == expect["kind"].as_str()
        && is_delay(
            delay,
            found.and_then(|refusal| refusal.until),
            &row["body"],
            &expect["delay_s"],
        )
        && expect["dimension"].as_str().is_none_or(|expected| dimension == Some(expected))
        && (expect["limit"].is_null()
            || found.and_then(|refusal| refusal.limit) == expect["limit"].as_u64());
    match is_right {
        true => Ok(()),
        false => Err(format!("{}: {refusal:?}, not {expect}", row["name"])),
    }
}

fn is_delay(
    delay: Option<Duration>,
    until: Option<Timestamp>,
    body: &Value,
    expected: &Value,
) -> bool {
    match expected {
        Value::Null => delay.is_none() && until.is_none(),
        Value::Number(seconds) => {
            let seconds = seconds.as_f64().expect("a number");
            delay.is_some_and(|delay| (delay.as_secs_f64() - seconds).abs() <= 0.01)
        }
        Value::String(name) if name == "reset" => {
            until == Some(MIDNIGHT) && delay == Some(MIDNIGHT - NOW)
        }
        Value::String(name) if name == "date" => {
            let dates = [
                ("2026-09-04 19:01:25", 1_788_548_485),
                ("2026-09-03 16:21:00 +0800", 1_788_423_660),
                ("Sep 5th, 2026 9:12 AM", 1_788_599_520),
            ];
            let body = body.as_str().expect("a body");
            let date = dates.iter().find(|(text, _)| body.contains(text)).expect("a known date");
            let time = Timestamp::from_unix_secs(date.1);
            until == Some(time) && delay == Some(time - NOW)
        }
        _ => true,
    }
}

/// An error in a success says what it says with its status and without headers, unless only the status shows that it is
/// a refusal, or a delay stands beside the error.
#[test]
fn error_in_band_is_read_like_one_with_its_status() {
    const ONLY_BY_STATUS: &[&str] = &[
        "oai-slow-down",
        "qwen-burst",
        "zai-1302",
        "zai-1303",
        "zai-1305",
        "zai-1313",
        "mis-unavailable",
        "half-hour",
    ];
    let (mut compared, mut different) = (0, Vec::new());
    for row in TABLES[..3].iter().flat_map(|rows| rows.lines()) {
        let mut row: Value = serde_json::from_str(row).expect("a row of JSON");
        let name = row["name"].as_str().expect("a name").to_owned();
        row["headers"] = serde_json::json!({});
        let expected = read(&row);
        row["status"] = 200.into();
        let has_error = error_in_band(&row).is_some();
        if has_error && !ONLY_BY_STATUS.contains(&&name[..]) {
            let in_band = read(&row);
            let status = in_band.as_ref().and_then(|refusal| refusal.status);
            let expected = expected.map(|mut refusal| {
                refusal.status = status;
                refusal
            });
            if in_band != expected {
                different.push(name);
            }
            compared += 1;
        }
    }
    assert!(compared > 80, "{compared}");
    assert_eq!(different, ["body-retry-ms", "express", "hf-loading"]);
}

#[test]
fn members_of_an_error_in_band_are_read() {
    let seconds = |body: &str| {
        let mut scanner = Scanner::new(OPENAI, Some("text/event-stream"));
        scanner.feed(format!("data: {body}\n\n").as_bytes());
        let error = scanner.finish().error.expect("an error");
        let refusal = OPENAI.refusal_in_band(&error, NOW).expect("a refusal");
        refusal.delay.map(|delay| delay.as_secs_f64())
    };
    for (body, expected) in [
        (r#"{"error":{"code":429,"retry_after":7}}"#, Some(7.0)),
        (r#"{"error":{"code":429,"metadata":{"a":[{"retry_after_ms":"1500"}]}}}"#, Some(1.5)),
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"m","retry_after":7}"#,
            Some(7.0),
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","resets_in_seconds":9}}}"#,
            Some(9.0),
        ),
        // What is around the error may repeat the request.
        (r#"{"error":{"code":429},"user":"u","retry_after":12.5}"#, None),
        (r#"{"error":"rate limit exceeded","tools":[{"retry_after":8}]}"#, None),
        (r#"{"error":{"code":429},"choices":[{"error":{"retry_after":8}}]}"#, None),
        (
            r#"{"error":{"code":429},"instructions":"{\"retry_after\":7}","tools":[{"retry_after":8}]}"#,
            None,
        ),
        (r#"{"retry_after":7,"choices":[],"error":{"code":429}}"#, None),
        (
            r#"{"type":"error","error":{"code":429,"retry_after":7},"request":{"retry_after":8}}"#,
            Some(7.0),
        ),
        (
            r#"{"type":"error","request":{"retry_after":8},"error":{"code":429,"retry_after":7}}"#,
            Some(7.0),
        ),
        // An object names itself an error too late.
        (r#"{"retry_after":7,"code":"rate_limit_exceeded","message":"m","type":"error"}"#, None),
    ] {
        assert_eq!(seconds(body), expected, "{body}");
    }
}

/// What the model or the user wrote is no part of the error beside it.
#[test]
fn texts_around_an_error_in_band_say_nothing_of_it() {
    let call = r#"{"message": "insufficient credits"}"#.replace('"', "\\\"");
    for beside in [
        format!(
            r#""choices":[{{"message":{{"tool_calls":[{{"function":{{"arguments":"{call}"}}}}]}}}}]"#
        ),
        r#""message":"insufficient credits","instructions":"Your account is suspended""#.to_owned(),
        r#""output":[{"type":"message","content":[{"text":"insufficient_quota"}]}]"#.to_owned(),
    ] {
        for body in [
            format!(r#"{{"error":{{"code":429,"message":"Rate limit exceeded"}},{beside}}}"#),
            format!(r#"{{{beside},"error":{{"code":429,"message":"Rate limit exceeded"}}}}"#),
        ] {
            let row = serde_json::json!({"url": "https://api.openai.com", "body": body});
            let error = error_in_band(&row).expect("an error");
            let refusal = OPENAI.refusal_in_band(&error, NOW).expect("a refusal");
            assert_eq!(refusal.kind, RefusalKind::Rate, "{body}");
        }
    }
}

#[test]
fn details_of_a_pretty_printed_error_are_kept_whole() {
    let violation = serde_json::json!({
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count",
        "quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier",
        "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
        "quotaValue": "250000"
    });
    let body = serde_json::json!({"error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
             "violations": [violation, violation, violation]},
            {"@type": "type.googleapis.com/google.rpc.Help",
             "links": [{"description": "Learn more", "url": "https://ai.google.dev/limits"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
        ]
    }});
    let row = serde_json::json!({
        "url": "https://generativelanguage.googleapis.com",
        "body": serde_json::to_string_pretty(&body).expect("JSON")
    });
    let error = error_in_band(&row).expect("an error");
    let refusal = GEMINI.refusal_in_band(&error, NOW).expect("a refusal");
    assert_eq!(refusal.delay.map(|delay| delay.as_secs()), Some(34));
}

/// Groq repeats what the model generated in an error.
#[test]
fn generated_text_in_an_error_says_nothing_of_it() {
    for generated in [
        r#"[{"name": "list", "arguments": {"status": "overdue"}}]"#,
        r#"{"message": "insufficient credits"}"#,
    ] {
        let body = serde_json::json!({"error": {
            "message": "Failed to call a function.", "type": "invalid_request_error",
            "code": "tool_use_failed", "failed_generation": generated
        }});
        for status in [200, 400] {
            let url = "https://api.groq.com/openai/v1/chat/completions";
            let row = serde_json::json!({
                "url": url, "status": status, "headers": {}, "body": body.to_string()
            });
            let kind = read(&row).map(|refusal| refusal.kind);
            assert!(kind.is_none_or(|kind| kind == RefusalKind::Request), "{status}: {kind:?}");
        }
    }
}

/// Reads a row as the layer does.
fn read(row: &Value) -> Option<Refusal> {
    let profile = Profile::find(row["url"].as_str().expect("a URL"));
    let pairs = row["headers"].as_object().expect("headers").iter();
    let headers: HeaderMap = pairs
        .map(|(name, value)| {
            let name: HeaderName = name.parse().expect("a name");
            (name, value.as_str().expect("a text").parse().expect("a value"))
        })
        .collect();
    let status = row["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let status = StatusCode::from_u16(status.expect("a number")).expect("a status");
    let body = row["body"].as_str().expect("a body").as_bytes();
    if !status.is_success() {
        return profile.refusal(status, &headers, body, NOW);
    }
    profile.refusal_in_band(&error_in_band(row)?, NOW)
}

/// Returns the error that is found in the body of a success.
fn error_in_band(row: &Value) -> Option<ApiError> {
    let profile = Profile::find(row["url"].as_str().expect("a URL"));
    let mut scanner = Scanner::new(profile, None);
    scanner.feed(row["body"].as_str().expect("a body").as_bytes());
    scanner.finish().error
}

const TABLES: [&str; 5] = [
    include_str!("../data/refusals.jsonl"),
    include_str!("../data/refusals_held_out.jsonl"),
    include_str!("../data/refusals_second_held_out.jsonl"),
    include_str!("../data/refusals_found_wrong.jsonl"),
    include_str!("../data/refusals_third_held_out.jsonl"),
];
