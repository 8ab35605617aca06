//! The HAR dialects of several tools.

use paceline::Timestamp;
use serde_json::json;

use super::rig::{entry, har, read, read_one};

#[test]
fn chrome_pseudo_headers_and_missing_response_are_read() {
    let aborted = json!({
        "_initiator": {"type": "script", "stack": {"callFrames": []}}, "_resourceType": "fetch",
        "startedDateTime": "2025-06-01T12:00:00.123Z", "time": 0.5,
        "request": {"method": "POST", "url": "https://api.openai.com/v1/responses",
                    "httpVersion": "h2", "bodySize": 0, "headersSize": -1,
                    "headers": [{"name": ":authority", "value": "api.openai.com"},
                                {"name": "X-Stainless-Lang", "value": "js"}]},
        "response": {"status": 0, "statusText": "", "headers": [], "_error": "net::ERR_ABORTED",
                     "content": {"size": 0, "mimeType": "x-unknown"}},
    });
    let socket = json!({
        "_resourceType": "websocket",
        "_webSocketMessages": [{"type": "send", "time": 1.5, "opcode": 1, "data": "{}"}],
        "request": {"method": "GET", "url": "wss://api.openai.com/v1/realtime", "headers": []},
        "response": {"status": 101, "headers": [], "content": {"size": 0}},
    });
    let (entries, ended) = read(har(&[aborted, socket]));
    assert_eq!((entries.len(), ended), (2, Ok(())));
    assert_eq!(entries[0].request.headers.len(), 1);
    assert_eq!((entries[0].response.status, entries[1].response.status), (0, 101));
    assert_eq!(entries[0].ended_at, Some(Timestamp::from_nanos(1_748_779_200_123_500_000)));
    assert_eq!(entries[1].ended_at, None);
}

#[test]
fn firefox_headers_joined_by_line_breaks_are_split() {
    let response = json!({"status": 200, "content": {"mimeType": "application/json", "text": "{}"},
        "headers": [{"name": "Set-Cookie", "value": "a=1\nb=2"},
                    {"name": "X-RateLimit-Limit-Tokens", "value": " 30000 "}]});
    let read = read_one(&entry("https://h/v1", json!({"text": "x", "params": []}), response));
    let cookies: Vec<_> = read.response.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert_eq!(read.response.headers["x-ratelimit-limit-tokens"], "30000");
    assert_eq!(read.response.headers["content-type"], "application/json");
}

#[test]
fn mitmproxy_base64_bodies_and_form_params_are_decoded() {
    let response = json!({"status": 200, "headers": [],
        "content": {"size": 5, "compression": 0, "mimeType": "application/vnd.amazon.eventstream",
                    "text": "AAECA/8=", "encoding": "base64"}});
    let post = json!({"mimeType": "application/x-www-form-urlencoded", "text": null,
                      "params": [{"name": "model", "value": "whisper-1"}, {"name": "n"}]});
    let read = read_one(&entry("https://h/v1", post, response));
    assert_eq!(read.response.body, [0, 1, 2, 3, 255]);
    assert_eq!(read.request.body, b"model=whisper-1\nn=");
}

#[test]
fn base64_with_line_breaks_and_no_padding_is_decoded() {
    let post = json!({"text": "eyJh\r\nIjox\nfQ", "encoding": "Base64"});
    let read = read_one(&entry("https://h/v1", post, json!({"status": 200})));
    assert_eq!(read.request.body, br#"{"a":1}"#);
}

#[test]
fn invalid_base64_is_kept_unchanged() {
    let post = json!({"text": "{\"a\": 1}", "encoding": "base64"});
    let read = read_one(&entry("https://h/v1", post, json!({"status": 200})));
    assert_eq!(read.request.body, br#"{"a": 1}"#);
}

#[test]
fn byte_order_mark_and_time_zone_offset_are_read() {
    let mut one = entry("https://h/v1", json!({}), json!({"status": 200}));
    one["startedDateTime"] = json!("2025-06-01T14:00:00.000+02:00");
    let (entries, ended) = read(format!("\u{feff}{}", har(&[one])));
    assert_eq!((entries.len(), ended), (1, Ok(())));
    assert_eq!(entries[0].ended_at, Some(Timestamp::from_unix_secs(1_748_779_200)));
}

#[test]
fn end_time_is_start_plus_duration_or_response_date() {
    let ended = |started: &str, time: f64, date: &str| {
        let headers = json!([{"name": "Date", "value": date}]);
        let mut one = entry("https://h", json!({}), json!({"status": 200, "headers": headers}));
        (one["startedDateTime"], one["time"]) = (json!(started), json!(time));
        read_one(&one).ended_at.map(|time| time.as_nanos() / 1_000_000)
    };
    assert_eq!(ended("2025-06-01T12:00:00Z", 1500.0, ""), Some(1_748_779_201_500));
    assert_eq!(ended("2025-06-01T12:00:00+0000", -1.0, ""), Some(1_748_779_200_000));
    assert_eq!(ended("Sun, 01 Jun 2025 12:00:00 GMT", -1.0, ""), Some(1_748_779_200_000));
    let date = "Sun, 01 Jun 2025 12:00:05 GMT";
    assert_eq!(ended("1970-01-01T00:00:00Z", -1.0, date), Some(1_748_779_205_000));
    assert_eq!(ended("yesterday", 1e300, date), Some(1_748_779_205_000));
    assert_eq!(ended("1970-01-01T01:00:00+01:00", -1.0, "soon"), None);
}

#[test]
fn lines_hold_one_entry_each() {
    let one = entry("https://h/v1/a", json!({"text": "{}"}), json!({"status": 200}));
    let other = entry("https://h/v1/b", json!({"text": "{}"}), json!({"status": 500}));
    let (entries, ended) = read(format!("{one}\n\r\n{other}\n"));
    assert_eq!(ended, Ok(()));
    let statuses: Vec<_> = entries.iter().map(|entry| entry.response.status).collect();
    assert_eq!(statuses, [200, 500]);
}

#[test]
fn mistyped_members_are_replaced_by_defaults() {
    let odd = json!({
        "startedDateTime": 5, "time": "soon",
        "request": {"method": null, "url": "https://h/v1", "headers": {"a": 1}, "postData": []},
        "response": {"status": "200", "headers": [{"name": 1, "value": "x"}, {"name": "a b"}],
                     "content": {"text": "{}", "encoding": 7, "mimeType": null}},
    });
    let whole = entry("https://h/v1/b", json!({"text": "{}"}), json!({"status": 201}));
    let (entries, ended) = read(har(&[json!(null), json!([1]), odd, whole]));
    assert_eq!((entries.len(), ended), (4, Ok(())));
    assert_eq!(entries[2].request.url, "https://h/v1");
    assert_eq!((entries[2].response.status, &entries[2].response.body[..]), (0, &b"{}"[..]));
    assert_eq!(entries[3].response.status, 201);
}
