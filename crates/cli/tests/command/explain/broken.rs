//! Files that are none, or not whole.

use serde_json::json;
use tollgate_cli::explain::har::Problem;

use super::rig::{chat, exchange, har, read, usage};

#[test]
fn a_file_that_is_cut_off_is_read_up_to_there() {
    let whole = har(&[exchange(&chat(), &usage(1, 2)), exchange(&chat(), &usage(3, 4))]);
    let second = whole.rfind("request").expect("it has two");
    let (entries, ended) = read(&whole[..second]);
    let error = ended.expect_err("it is cut off");
    assert_eq!((entries.len(), error.entries), (1, 1));
    assert_eq!(error.problem, Problem::CutOff { line: 1 });
    let told = error.to_string();
    assert!(
        told.contains("entry 1") && told.contains("line 1") && told.contains("again"),
        "{told}"
    );
}

#[test]
fn every_cut_is_an_error_that_keeps_what_was_whole() {
    let whole = har(&[exchange(&chat(), &usage(1, 2)), exchange(&chat(), &usage(3, 4))]);
    let mut before = 0;
    for end in 0..whole.len() {
        let (entries, ended) = read(&whole[..end]);
        let error = ended.expect_err("it is cut off");
        let fits = match error.problem {
            Problem::Empty => end == 0,
            Problem::CutOff { line: 1 } => end > 0,
            _ => false,
        };
        assert!(fits && entries.len() == error.entries, "{end}: {error:?}");
        assert!(entries.len() >= before, "{end}: what was read before is lost");
        before = entries.len();
    }
    assert_eq!(before, 2);
}

#[test]
fn what_is_not_json_is_told_with_its_line_and_without_its_text() {
    let one = exchange(&chat(), &usage(1, 2));
    let (entries, ended) = read(format!("{one}\n{{\"request\": s3cret}}\n{one}\n"));
    let error = ended.expect_err("the second line is no JSON");
    assert_eq!((entries.len(), error.entries), (1, 1));
    assert!(matches!(error.problem, Problem::NotJson { line: 2, .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

#[test]
fn json_that_is_no_har_is_told_apart_from_an_empty_list() {
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
        assert_eq!((entries.len(), &error.problem), (0, &Problem::NoEntries), "{text}");
        assert!(error.to_string().contains("log.entries"));
        assert!(!error.to_string().contains("s3cret"));
    }
    assert_eq!(read("").1.map_err(|error| error.problem), Err(Problem::Empty));
    assert_eq!(read(" \n").1.map_err(|error| error.problem), Err(Problem::Empty));
    assert_eq!(read(json!({"log": {"entries": []}}).to_string()).1, Ok(()));
}

#[test]
fn bytes_that_are_no_text_are_an_error_and_no_panic() {
    let (entries, ended) = read(b"{\"log\": {\"entries\": [\"\xff\xfe\"]}}");
    assert_eq!(entries.len(), 0);
    assert!(matches!(ended.expect_err("no UTF-8").problem, Problem::NotJson { .. }));
}

#[test]
fn nesting_without_end_is_no_overflow_of_the_stack() {
    let deep = format!("{{\"log\": {{\"entries\": [{}", "[".repeat(1_000_000));
    let (_, ended) = read(&deep);
    assert!(matches!(ended.expect_err("it is cut off").problem, Problem::CutOff { .. }));
    let deep = format!("{{\"pages\": {}", "[{\"a\":".repeat(1_000_000));
    assert!(read(&deep).1.is_err());
}
