use std::fs;
use std::path::Path;

use paceline_cli::batch::RequestHash;
use paceline_cli::batch::input::{ParsedLine, Reader};
use paceline_cli::batch::outcome::{BatchResponse, Failure, Outcome};
use paceline_cli::batch::output::{Output, OutputError};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir, tempdir_in};

pub(super) fn ok(id: &str) -> Outcome {
    Outcome::succeeded(id, BatchResponse::new(200, r#"{"usage":{"total_tokens":3}}"#))
}

pub(super) fn refused(id: &str) -> Outcome {
    let answer = BatchResponse::new(400, r#"{"error":{"message":"no such model"}}"#);
    Outcome::failed(id, Some(answer), Failure::new("http_400", "no such model"))
}

pub(super) fn retryable(id: &str) -> Outcome {
    Outcome::failed(id, None, Failure::new("timeout", "no response in 60 s").retryable())
}

/// Returns a temporary directory, in memory if possible: syncing a file to disk per test case would
/// take most of the time.
pub(super) fn folder() -> TempDir {
    tempdir_in("/dev/shm").or_else(|_| tempdir()).expect("a folder")
}

pub(super) fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the file is UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "incomplete last line: {text}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

pub(super) fn ids(path: &Path) -> Vec<String> {
    let id = |value: &Value| value["custom_id"].as_str().expect("an id").to_owned();
    values(path).iter().map(id).collect()
}

pub(super) fn run(path: &Path, outcomes: &[Outcome]) {
    let (mut output, _) = Output::open(path, None).expect("the output opens");
    outcomes.iter().for_each(|outcome| output.write(outcome).expect("the write succeeds"));
    output.finish().expect("the sync succeeds");
}

fn one(outcome: &Outcome) -> Value {
    let mut line = Vec::new();
    outcome.append_to(&mut line);
    assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1, "one line: {line:?}");
    serde_json::from_slice(&line).expect("the line is JSON")
}

#[test]
fn result_has_openai_batch_output_format() {
    let answer = BatchResponse::new(200, "{\"n\": 1}").with_request_id("req_7");
    let value = one(&Outcome::succeeded("a", answer));
    assert!(value["id"].as_str().expect("an id").starts_with("batch_req_"));
    assert_eq!(value["custom_id"], "a");
    assert_eq!(
        value["response"],
        json!({"status_code": 200, "request_id": "req_7", "body": {"n": 1}})
    );
    assert_eq!(value["error"], Value::Null);
    assert_eq!(value.as_object().expect("an object").len(), 4);
}

#[test]
fn failure_keeps_response_and_invalid_line_keeps_number() {
    let failed = one(&refused("a"));
    assert_eq!(failed["response"]["status_code"], 400);
    assert_eq!(
        failed["error"],
        json!({"code": "http_400", "message": "no such model", "retryable": false})
    );
    let bad = Reader::new("\n{oops".as_bytes(), "/").next().expect("a line").expect("text");
    let ParsedLine::Invalid(bad) = bad else { panic!("{bad:?}") };
    let bad = one(&bad.into());
    assert_eq!((&bad["custom_id"], &bad["line"]), (&json!("line-2"), &json!(2)));
    assert_eq!((&bad["response"], &bad["error"]["code"]), (&Value::Null, &json!("invalid_line")));
}

#[test]
fn body_is_exact_json_or_string_on_one_line() {
    let body = |bytes: &'static [u8]| {
        one(&Outcome::succeeded("a", BatchResponse::new(200, bytes)))["response"]["body"].clone()
    };
    assert_eq!(body(b"{\r\n  \"a\": [\n1,\n2]\n}\n"), json!({"a": [1, 2]}));
    assert_eq!(body(b"data: {\"a\":1}\n\ndata: [DONE]\n\n"), "data: {\"a\":1}\n\ndata: [DONE]\n\n");
    assert_eq!(body(b"<html>\n"), "<html>\n");
    assert_eq!(body(b""), "");
    assert_eq!(body(b"\xff"), "\u{fffd}");
    let mut line = Vec::new();
    Outcome::succeeded(
        "a",
        BatchResponse::new(200, r#"{"x": 1.0e+2, "y":123456789012345678901234}"#),
    )
    .append_to(&mut line);
    let line = String::from_utf8(line).expect("text");
    assert!(line.contains(r#"{"x": 1.0e+2, "y":123456789012345678901234}"#), "{line}");
}

#[test]
fn failures_go_to_errors_file_if_named() {
    let folder = folder();
    let (out, errors) = (folder.path().join("out"), folder.path().join("errors"));
    let (mut output, _) = Output::open(&out, Some(&errors)).expect("both files open");
    for outcome in [ok("a"), refused("b"), retryable("c"), ok("d")] {
        output.write(&outcome).expect("the write succeeds");
    }
    output.finish().expect("the sync succeeds");
    assert_eq!(
        (ids(&out), ids(&errors)),
        (vec!["a".into(), "d".into()], vec!["b".into(), "c".into()])
    );

    let (_output, done) = Output::open(&out, Some(&errors)).expect("both files open again");
    assert_eq!((done.succeeded(), done.failed(), done.again()), (2, 1, 1));
    assert!(done.contains("a") && done.contains("b") && !done.contains("c"));
    assert_eq!(ids(&errors), ["b"], "the retryable failure was removed");
}

#[test]
fn same_path_for_output_and_errors_is_one_file() {
    let folder = folder();
    let out = folder.path().join("out");
    let same = folder.path().join(".").join("out");
    let (mut output, _) = Output::open(&out, Some(&same)).expect("the file opens");
    output.write(&ok("a")).and_then(|()| output.write(&refused("b"))).expect("the write succeeds");
    output.finish().expect("the sync succeeds");
    assert_eq!(ids(&out), ["a", "b"]);
}

#[test]
fn second_run_is_rejected_while_either_file_is_locked() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let (first, _) = Output::open(&path("out"), Some(&path("errors"))).expect("the file opens");
    for (out, errors) in [("out", None), ("other", Some("errors")), ("errors", None)] {
        let refused = Output::open(&path(out), errors.map(path).as_deref());
        let message = refused.expect_err("the first run holds the lock").to_string();
        assert!(message.contains("another run is writing"), "{message}");
        assert!(message.contains(".lock); wait for it to end, or write to another"), "{message}");
    }
    drop(first);
    Output::open(&path("out"), Some(&path("errors"))).expect("the lock is released");
}

#[cfg(unix)]
#[test]
fn link_and_target_share_lock_and_link_is_kept() {
    let folder = folder();
    let (out, link) = (folder.path().join("out"), folder.path().join("link"));
    run(&out, &[ok("a"), retryable("b")]);
    std::os::unix::fs::symlink(&out, &link).expect("a link");
    let (held, _) = Output::open(&link, None).expect("the file opens");
    assert!(matches!(Output::open(&out, None), Err(OutputError::Locked { .. })));
    drop(held);
    assert!(fs::symlink_metadata(&link).expect("the file exists").is_symlink());
    assert_eq!(ids(&out), ["a"]);
}

#[test]
fn foreign_file_is_rejected_and_unchanged() {
    let folder = folder();
    let path = folder.path().join("mine");
    let foreign: [&[u8]; 8] = [
        b"my only copy of a poem\n",
        b"my only copy of a poem",
        b"{\"id\":\"x\"}\n",
        b"{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/x\",\"body\":{}}\n",
        b"{\"custom_id\":\"a\",\"body\":{}}",
        b"{\n  \"indented\": true\n}\n",
        b"[]",
        b"\x7fELF\x00\x01",
    ];
    for content in foreign {
        fs::write(&path, content).expect("the write succeeds");
        let error = Output::open(&path, None).expect_err("the file is foreign");
        assert!(matches!(error, OutputError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("write to another file"), "{error}");
        assert_eq!(fs::read(&path).expect("the file exists"), content);
    }
}

#[test]
fn corrupt_line_is_error_and_files_are_unchanged() {
    let folder = folder();
    let (out, errors) = (folder.path().join("out"), folder.path().join("errors"));
    run(&out, &[ok("a"), retryable("b")]);
    run(&errors, &[refused("c"), refused("d"), refused("e")]);
    let before = fs::read(&out).expect("the file exists");
    let text = fs::read_to_string(&errors).expect("text");
    for (from, to) in [("\"custom_id\":\"d\"", "\"custom_id:\"d\""), ("\"response\"", "\"reply\"")]
    {
        let at = text.find("\"d\"").map(|d| text[..d].rfind('\n').expect("a line before") + 1);
        let (head, tail) = text.split_at(at.expect("the second line"));
        let corrupt = format!("{head}{}", tail.replacen(from, to, 1));
        assert_ne!(corrupt, text);
        fs::write(&errors, &corrupt).expect("the write succeeds");
        let error = Output::open(&out, Some(&errors)).expect_err("the file is corrupt");
        assert!(matches!(error, OutputError::Corrupt { line: 2, .. }), "{error}");
        assert!(error.to_string().contains("fix or delete that line"), "{error}");
        assert_eq!(fs::read_to_string(&errors).expect("text"), corrupt);
        assert_eq!(fs::read(&out).expect("the file exists"), before, "the valid file is unchanged");
    }
}

#[test]
fn irregular_output_and_missing_directory_are_rejected() {
    let folder = folder();
    let error = Output::open(folder.path(), None).expect_err("a directory is not a file");
    assert!(matches!(error, OutputError::NotAFile { .. }), "{error}");
    let error =
        Output::open(&folder.path().join("no/out"), None).expect_err("the directory is missing");
    assert!(error.to_string().contains("no/out"), "{error}");
}

#[test]
fn hundred_thousand_finished_ids_fit_six_megabytes() {
    let folder = folder();
    let path = folder.path().join("out");
    let mut text = Vec::new();
    let hash = RequestHash::of("/v1/x", b"{}");
    let result = |n: usize| ok(&format!("a-rather-long-name-{n}")).with_hash(hash);
    (0..100_000).for_each(|n| result(n).append_to(&mut text));
    fs::write(&path, text).expect("the write succeeds");
    let (_output, done) = Output::open(&path, None).expect("the file opens");
    assert_eq!(done.succeeded(), 100_000);
    assert!(done.contains("a-rather-long-name-99999") && !done.contains("b"));
    assert!(done.memory() < 6_000_000, "{} bytes", done.memory());
}
