//! Explanations of exchanges.

use paceline_cli::explain::{Summary, TableRow};
use serde_json::{Value, json};

use super::rig::{chat, entry, exchange, explained, line, read_one, usage};

fn refusal(status: u64, headers: &Value, error: &Value) -> Value {
    let content =
        json!({"mimeType": "application/json", "text": json!({"error": error}).to_string()});
    let response = json!({"status": status, "headers": headers, "content": content});
    let post = json!({"text": chat().to_string()});
    entry("https://api.openai.com/v1/chat/completions", post, response)
}

#[test]
fn json_line_has_charge_usage_and_limits() {
    let mut one = exchange(&chat(), &usage(12, 9));
    one["response"]["headers"] = json!([
        {"name": "X-RateLimit-Limit-Tokens", "value": "30000"},
        {"name": "x-ratelimit-remaining-tokens", "value": "29943"},
        {"name": "x-ratelimit-reset-tokens", "value": "11.355s"},
    ]);
    let expected = json!({
        "file": "a.har", "index": 0, "provider": "openai", "model": "gpt-4o",
        "charge": {"requests": 1, "tokens": 57, "input_tokens": 12, "output_tokens": 50},
        "usage": {"input": 12, "output": 9, "cache_read": 0, "cache_write": 0},
        "limits": [{"dimension": "tokens", "limit": 30000, "remaining": 29943, "reset_s": 11.355,
            "window_s": 60.0}],
        "class": "ok", "retry_after_s": null, "status": 200, "error": null,
        "time": "2025-06-01T12:00:00.000Z",
        "refusal": null,
    });
    assert_eq!(line(&one), expected);
}

#[test]
fn traffic_without_model_is_explained() {
    let mut image = entry("https://h/logo.png", Value::Null, json!({"status": 304}));
    image["request"]["method"] = json!("GET");
    let line = line(&image);
    assert_eq!((&line["provider"], &line["class"]), (&json!("compatible"), &json!("ok")));
    assert_eq!(
        (&line["model"], &line["usage"], &line["limits"]),
        (&json!(null), &json!(null), &json!([]))
    );
    let charge = json!({"requests": 1, "tokens": 0, "input_tokens": 0, "output_tokens": 0});
    assert_eq!(line["charge"], charge);
}

#[test]
fn errors_have_class_and_retry_delay() {
    let of = |one: &Value| {
        let line = line(one);
        (line["class"].as_str().expect("a class").to_owned(), line["retry_after_s"].as_f64())
    };
    let limited = json!({"code": "rate_limit_exceeded", "message": "try again in 41.724s"});
    assert_eq!(of(&refusal(429, &json!([]), &limited)), ("transient".into(), Some(41.724)));
    let daily =
        json!({"code": "rate_limit_exceeded", "message": "requests per day (RPD): Limit 200"});
    assert_eq!(of(&refusal(429, &json!([]), &daily)), ("until_reset".into(), None));
    let spent = json!({"code": "insufficient_quota", "message": ""});
    assert_eq!(of(&refusal(429, &json!([]), &spent)), ("terminal".into(), None));
    let none = json!({"code": "x", "message": "m"});
    assert_eq!(of(&refusal(0, &json!([]), &none)), ("transient".into(), None));
}

#[test]
fn retry_after_date_is_relative_to_recording_time() {
    let date = json!([{"name": "Retry-After", "value": "Sun, 01 Jun 2025 12:00:30 GMT"}]);
    let mut one = refusal(503, &date, &json!({"code": "server_error"}));
    assert_eq!(line(&one)["retry_after_s"], json!(30.0));
    one["startedDateTime"] = json!("1970-01-01T00:00:00Z");
    assert_eq!(line(&one)["retry_after_s"], json!(null));
}

#[test]
fn reset_time_is_relative_to_recording_time() {
    let headers = json!([
        {"name": "anthropic-ratelimit-requests-limit", "value": "50"},
        {"name": "anthropic-ratelimit-requests-remaining", "value": "49"},
        {"name": "anthropic-ratelimit-requests-reset", "value": "2025-06-01T12:00:01Z"},
    ]);
    let url = "https://api.anthropic.com/v1/messages";
    let mut one = entry(url, json!({"text": "{}"}), json!({"status": 200, "headers": headers}));
    let mut limits = json!([{"dimension": "requests", "limit": 50, "remaining": 49, "reset_s": 1.0,
            "window_s": 60.0}]);
    assert_eq!(line(&one)["limits"], limits);
    one["startedDateTime"] = json!("1970-01-01T00:00:00Z");
    limits[0]["reset_s"] = Value::Null;
    assert_eq!(line(&one)["limits"], limits);
}

#[test]
fn retry_after_on_success_is_ignored() {
    let mut one = exchange(&chat(), &usage(12, 9));
    one["response"]["headers"] = json!([{"name": "retry-after", "value": "25"}]);
    assert_eq!(line(&one)["retry_after_s"], json!(null));
}

#[test]
fn error_in_body_of_success_is_in_band() {
    let error = json!({"error": {"code": "rate_limit_exceeded", "message": "try again in 7s"}});
    let mut one = exchange(&chat(), &json!({}));
    let text = format!(
        "data: {}\n\ndata: {error}\n\n",
        json!({"choices": [{"delta": {"content": "try again in 99s"}}]})
    );
    one["response"]["content"] = json!({"mimeType": "text/event-stream", "text": text});
    let line = line(&one);
    assert_eq!((&line["class"], &line["retry_after_s"]), (&json!("in_band"), &json!(7.0)));
    assert_eq!((&line["status"], &line["error"]), (&json!(200), &json!("rate_limit_exceeded")));
}

#[test]
fn preflights_and_parts_of_pages_are_no_exchanges() {
    let is_exchange = |method: &str, url: &str, kind: &str| {
        let content = json!({"mimeType": kind, "text": "x"});
        let mut one = entry(url, Value::Null, json!({"status": 200, "content": content}));
        one["request"]["method"] = json!(method);
        read_one(&one).is_exchange()
    };
    let chat = "https://api.openai.com/v1/chat/completions";
    assert!(is_exchange("POST", chat, "application/json"));
    assert!(is_exchange("GET", "https://api.openai.com/v1/models", "application/json"));
    assert!(is_exchange("POST", "https://api.openai.com/v1/audio/speech", "audio/mpeg"));
    assert!(!is_exchange("OPTIONS", chat, "text/plain"));
    assert!(!is_exchange("GET", "https://chat.example/logo", "image/png"));
    assert!(!is_exchange("GET", "https://chat.example/logo.png?v=2", ""));
    assert!(!is_exchange("get", "https://chat.example/", "text/html; charset=utf-8"));
}

/// Mistral states the charge of the usage, which a reservation for an unbounded output is far above.
#[test]
fn charge_by_usage_is_compared_with_the_usage() {
    let mut one = exchange(
        &json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}),
        &usage(5, 95),
    );
    one["request"]["url"] = json!("https://api.mistral.ai/v1/chat/completions");
    one["response"]["headers"] = json!([{"name": "x-ratelimit-tokens-query-cost", "value": "100"}]);
    let mut summary = Summary::default();
    summary.add(&explained(&one));
    let text = summary.to_string();
    let row = text.lines().rfind(|line| line.starts_with("mistral")).unwrap();
    let columns: Vec<_> = row.split_whitespace().collect();
    assert_eq!(columns[..4], ["mistral", "1", "0.0", "%"], "{text}");
}

#[test]
fn table_row_escapes_control_characters() {
    let mut one = chat();
    one["model"] = json!("gpt-4o\u{1b}[2J");
    let explanation = explained(&exchange(&one, &usage(12, 9)));
    let row = TableRow::new(3, &explanation).to_string();
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words, ["3", "openai", "gpt-4o\u{fffd}[2J", "ok", "57", "12", "50", "12", "9", "0"]);
    let explanation = explained(&entry("https://h/v1", json!({"text": "no JSON"}), json!({})));
    let row = TableRow::new(0, &explanation).to_string();
    assert!(row.contains("~2 ") && row.contains("transient"), "{row}");
}

#[test]
fn summary_compares_charges_only_for_full_buckets() {
    let at = |second: u64, remaining: u64| {
        let mut one = exchange(&chat(), &usage(10, 9));
        one["startedDateTime"] =
            json!(format!("2025-06-01T12:{:02}:{:02}Z", second / 60, second % 60));
        one["response"]["headers"] = json!([
            {"name": "x-ratelimit-limit-tokens", "value": "30000"},
            {"name": "x-ratelimit-remaining-tokens", "value": remaining.to_string()},
        ]);
        explained(&one)
    };
    let mut summary = Summary::default();
    // Charges of 60 tokens to a full bucket, a partly used one, and a full one again.
    [at(0, 29_940), at(1, 29_880), at(61, 29_940)].iter().for_each(|one| summary.add(one));
    let text = summary.to_string();
    let row = text.lines().last().expect("at least one line");
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(
        words,
        ["openai", "2", "5.0", "%", "5.0", "%", "3", "20.0", "%", "20.0", "%"],
        "{text}"
    );
    assert!(text.starts_with("3 exchanges\n"), "{text}");
    assert!(text.contains("median") && summary.exchanges() == 3);
}

#[test]
fn explanations_show_no_secrets() {
    let mut prompt = chat();
    prompt["messages"][0]["content"] = json!("s3cret");
    let mut one = exchange(&prompt, &json!({"error": {"code": "c", "message": "s3cret"}}));
    one["response"]["headers"] = json!([{"name": "x-ratelimit-limit-tokens", "value": "s3cret"},
                                        {"name": "set-cookie", "value": "s3cret"}]);
    let explanation = explained(&one);
    let shown = format!(
        "{} {} {:?}",
        line(&one),
        TableRow::new(0, &explanation),
        super::rig::read_one(&one)
    );
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn refusal_is_explained_without_words_of_provider() {
    let error = json!({"code": "rate_limit_exceeded", "type": "tokens", "message":
        "on tokens per min (TPM): Limit 30000, Used 28675, Requested 1614. Please try again in 579ms. s3cret"});
    let one = refusal(429, &json!([]), &error);
    let expected = json!({"kind": "rate", "delay_s": 0.579, "until": null, "dimension": "tokens",
        "limit": 30000, "requested": 1614});
    assert_eq!(line(&one)["refusal"], expected);
    let daily = json!([{"name": "Retry-After", "value": "Sun, 01 Jun 2025 15:00:00 GMT"}]);
    let mut one = refusal(429, &daily, &json!({"message": "Daily limit reached"}));
    let mut expected = json!({"kind": "window", "delay_s": 10_800.0, "until": "2025-06-01T15:00:00.000Z",
        "dimension": null, "limit": null, "requested": null});
    assert_eq!(line(&one)["refusal"], expected);
    // Without the time of the recording, a time is no delay.
    one["startedDateTime"] = json!("1970-01-01T00:00:00Z");
    (expected["delay_s"], expected["until"]) = (Value::Null, Value::Null);
    assert_eq!(line(&one)["refusal"], expected);
}
