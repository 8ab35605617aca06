#[path = "../../../examples/har_to_batch.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
pub(crate) mod har_to_batch;

use std::path::Path;

use paceline_cli::batch::input::{ParsedLine, Reader};

use self::har_to_batch::convert;

#[test]
fn json_posts_become_lines_and_others_are_counted() {
    let har = serde_json::json!({"log": {"entries": [
        {"request": {"method": "GET", "url": "https://h/v1/models"}},
        {"request": {"method": "POST", "url": "https://h/v1/x?a=1", "postData": {"text": "{\n \"n\": 1.0\n}"}}},
        {"request": {"method": "POST", "url": "https://h/v1/x", "postData": {"text": "a=1"}}},
        {"request": {"method": "POST", "url": "https://h/v1/x", "postData": {"text": "[1]"}}},
        {"request": {"method": "POST", "url": "https://h/v1/x"}},
    ]}});
    let converted = convert(har.to_string().as_bytes(), "rec").expect("a valid HAR file");
    let line = r#"{"custom_id":"rec-1","method":"POST","url":"/v1/x?a=1","body":{ "n": 1.0}}"#;
    assert_eq!((converted.lines, converted.skipped), (vec![line.to_owned()], 4));
    assert!(convert(&b"{}"[..], "rec").is_err());
}

#[test]
fn recorded_traffic_becomes_valid_lines() {
    let Ok(corpus) = std::env::var("PACELINE_CORPUS") else {
        eprintln!("skipped: PACELINE_CORPUS is not set");
        return;
    };
    let path = Path::new(&corpus).join("openai.har");
    let har = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let converted = convert(har.as_bytes(), "openai").expect("a valid HAR file");
    assert!(converted.lines.len() > 100, "only {} lines", converted.lines.len());
    let text = converted.lines.join("\n");
    let entries: Vec<_> =
        Reader::new(text.as_bytes(), "/").map(|entry| entry.expect("text")).collect();
    assert_eq!(entries.len(), converted.lines.len());
    for entry in entries {
        assert!(
            matches!(&entry, ParsedLine::Request(line) if line.url_path.starts_with('/')),
            "{entry:?}"
        );
    }
}
