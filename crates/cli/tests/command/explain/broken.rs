//! Invalid and truncated files.

use paceline_cli::explain::har::HarErrorKind;
use serde_json::json;

use super::rig::{chat, exchange, har, read, usage};

#[test]
fn truncated_file_is_read_up_to_end() {
    let whole = har(&[exchange(&chat(), &usage(1, 2)), exchange(&chat(), &usage(3, 4))]);
    let second = whole.rfind("request").expect("two entries");
    let (entries, ended) = read(&whole[..second]);
    let error = ended.expect_err("the file is truncated");
    assert_eq!((entries.len(), error.entries), (1, 1));
    assert_eq!(error.kind, HarErrorKind::CutOff { line: 1 });
    let output = error.to_string();
    assert!(
        output.contains("entry 1") && output.contains("line 1") && output.contains("again"),
        "{output}"
    );
}

#[test]
fn truncated_file_yields_complete_entries_and_error() {
    let whole = har(&[exchange(&chat(), &usage(1, 2)), exchange(&chat(), &usage(3, 4))]);
    let mut before = 0;
    for end in 0..whole.len() {
        let (entries, ended) = read(&whole[..end]);
        let error = ended.expect_err("the file is truncated");
        let fits = match error.kind {
            HarErrorKind::Empty => end == 0,
            HarErrorKind::CutOff { line: 1 } => end > 0,
            _ => false,
        };
        assert!(fits && entries.len() == error.entries, "{end}: {error:?}");
        assert!(entries.len() >= before, "{end}: fewer entries than before");
        before = entries.len();
    }
    assert_eq!(before, 2);
}

#[test]
fn invalid_json_error_has_line_and_omits_text() {
    let one = exchange(&chat(), &usage(1, 2));
    let (entries, ended) = read(format!("{one}\n{{\"request\": s3cret}}\n{one}\n"));
    let error = ended.expect_err("the second line is invalid JSON");
    assert_eq!((entries.len(), error.entries), (1, 1));
    assert!(matches!(error.kind, HarErrorKind::NotJson { line: 2, .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

#[test]
fn json_without_entries_differs_from_empty_list() {
    for text in [
        "{}",
        "[]",
        "5",
        "\"s3cret\"",
        r#"{"log": 5}"#,
        r#"{"log": {}}"#,
        r#"{"log": {"entries": null}}"#,
        r#"{"log": {"entries": {"request": {}}}}"#,
        r#"{"custom_id": "a", "method": "POST", "url": "/v1", "body": {}}"#,
    ] {
        let (entries, ended) = read(text);
        let error = ended.expect_err(text);
        assert_eq!((entries.len(), &error.kind), (0, &HarErrorKind::NoEntries), "{text}");
        assert!(error.to_string().contains("log.entries"));
        assert!(!error.to_string().contains("s3cret"));
    }
    assert_eq!(read("").1.map_err(|error| error.kind), Err(HarErrorKind::Empty));
    assert_eq!(read(" \n").1.map_err(|error| error.kind), Err(HarErrorKind::Empty));
    assert_eq!(read(json!({"log": {"entries": []}}).to_string()).1, Ok(()));
}

#[test]
fn invalid_utf8_is_error_without_panic() {
    let (entries, ended) = read(b"{\"log\": {\"entries\": [\"\xff\xfe\"]}}");
    assert_eq!(entries.len(), 0);
    assert!(matches!(ended.expect_err("invalid UTF-8").kind, HarErrorKind::NotJson { .. }));
}

#[test]
fn deep_nesting_does_not_overflow_stack() {
    let deep = format!("{{\"log\": {{\"entries\": [{}", "[".repeat(1_000_000));
    let (_, ended) = read(&deep);
    assert!(matches!(ended.expect_err("the file is truncated").kind, HarErrorKind::CutOff { .. }));
    let deep = format!("{{\"pages\": {}", "[{\"a\":".repeat(1_000_000));
    assert!(read(&deep).1.is_err());
}
