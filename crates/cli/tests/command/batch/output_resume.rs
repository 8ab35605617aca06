use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use paceline_cli::batch::RequestHash;
use paceline_cli::batch::ids::{Id, Ids};
use paceline_cli::batch::input::{ParsedLine, Reader};
use paceline_cli::batch::outcome::{BatchResponse, Failure, Outcome};
use paceline_cli::batch::output::{EarlierResults, LineStatus, Output};

use super::output::{folder, ids, ok, refused, retryable, run, values};
#[cfg(target_os = "linux")]
use paceline_testing::process::{test_command, with_full_disk};

const INPUT: &str = r#"{"custom_id":"a","body":{}}
{"custom_id":"b \"é\\n\"","body":{}}
oops
{"custom_id":"c","body":{}}
{"custom_id":"d","body":{}}
"#;

/// Simulates a run over [`INPUT`] in which every request succeeds and which is killed at its end.
/// Returns the ids that it sent.
fn resume(out: &Path, errors: Option<&Path>) -> Vec<String> {
    let (mut output, done) = Output::open(out, errors).expect("the output opens");
    let mut sent = Vec::new();
    for entry in Reader::new(INPUT.as_bytes(), "/v1/x") {
        let outcome = match entry.expect("text") {
            ParsedLine::Request(line) if done.contains(&line.custom_id) => continue,
            ParsedLine::Request(line) => {
                sent.push(line.custom_id.clone());
                ok(&line.custom_id)
            }
            ParsedLine::Invalid(line) => line.into(),
        };
        output.write(&outcome).expect("the write succeeds");
    }
    sent
}

fn all() -> Vec<String> {
    ["a", "b \"é\\n\"", "c", "d", "line-3"].map(str::to_owned).to_vec()
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

/// Truncates a finished output at every byte, as a kill during a write does.
#[test]
fn file_truncated_at_any_byte_resumes_completely() {
    let folder = folder();
    let whole = folder.path().join("whole");
    run(&whole, &[ok("a"), ok("b \"é\\n\""), refused("c"), ok("d")]);
    let bytes = fs::read(&whole).expect("the file exists");
    let path = folder.path().join("out");
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).expect("the write succeeds");
        // A line that lacks only its newline is complete.
        let ended = bytes[..cut].iter().filter(|&&byte| byte == b'\n').count();
        let finished = ended + usize::from(bytes.get(cut) == Some(&b'\n'));
        let sent = resume(&path, None);
        assert_eq!(sent.len(), 4 - finished, "cut at {cut}: sent {sent:?}");
        assert_eq!(sorted(ids(&path)), all(), "cut at {cut}");
        assert!(resume(&path, None).is_empty(), "cut at {cut}: no request is left");
        assert_eq!(sorted(ids(&path)), all(), "cut at {cut}, run again");
    }
}

#[test]
fn truncated_retryable_failures_are_resent_once() {
    let folder = folder();
    let whole = folder.path().join("whole");
    run(&whole, &[retryable("a"), ok("b \"é\\n\""), retryable("d")]);
    let bytes = fs::read(&whole).expect("the file exists");
    let (out, errors) = (folder.path().join("out"), folder.path().join("errors"));
    for cut in 0..=bytes.len() {
        for errors_file in [None, Some(errors.as_path())] {
            let _ = fs::remove_file(&out);
            let _ = fs::remove_file(&errors);
            fs::write(errors_file.unwrap_or(&out), &bytes[..cut]).expect("the write succeeds");
            let sent: BTreeSet<_> = resume(&out, errors_file).into_iter().collect();
            assert!(["a", "c", "d"].iter().all(|id| sent.contains(*id)), "cut at {cut}: {sent:?}");
            let mut found = ids(&out);
            found.extend(errors_file.map(ids).unwrap_or_default());
            assert_eq!(sorted(found), all(), "cut at {cut}");
        }
    }
}

#[test]
fn incomplete_line_is_reported_and_complete_one_is_not() {
    let folder = folder();
    let path = folder.path().join("out");
    run(&path, &[ok("a"), ok("b")]);
    let len = fs::metadata(&path).expect("the file exists").len();
    for (cut, torn) in [(0, false), (1, false), (2, true)] {
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file opens");
        file.set_len(len - cut).expect("the file is truncated");
        let (_output, done) = Output::open(&path, None).expect("the file opens");
        assert_eq!((done.was_torn(), done.contains("b")), (torn, !torn), "{cut} bytes less");
    }
}

#[test]
fn trailing_zeros_are_truncated() {
    let folder = folder();
    let path = folder.path().join("out");
    for good in [vec![], vec![ok("a")]] {
        let _ = fs::remove_file(&path);
        run(&path, &good);
        let mut bytes = fs::read(&path).expect("the file exists");
        bytes.extend([0; 500]);
        fs::write(&path, bytes).expect("the write succeeds");
        let (_output, done) = Output::open(&path, None).expect("the file opens");
        assert!(done.was_torn());
        assert_eq!(ids(&path).len(), good.len());
    }
}

#[test]
fn written_line_is_in_file_before_run_ends() {
    let folder = folder();
    let path = folder.path().join("out");
    let (mut output, _) = Output::open(&path, None).expect("the file opens");
    output.write(&ok("a")).expect("the write succeeds");
    assert_eq!(ids(&path), ["a"]);
    // As after a kill: neither finished nor dropped. The lock is held until the process ends.
    std::mem::forget(output);
    assert!(Output::open(&path, None).is_err());
}

#[test]
fn fixed_input_line_replaces_error() {
    let folder = folder();
    let path = folder.path().join("out");
    resume(&path, None);
    assert_eq!(values(&path).iter().filter(|value| value["line"] == 3).count(), 1);
    let (mut output, done) = Output::open(&path, None).expect("the file opens");
    assert_eq!((done.again(), done.contains("line-3")), (1, false));
    output.write(&ok("line-3")).expect("the write succeeds");
    output.finish().expect("the sync succeeds");
    assert_eq!(sorted(ids(&path)), all());
    assert!(values(&path).iter().all(|value| value["error"].is_null()));
}

/// Even if the run is killed after that, the next run sends them.
#[test]
fn changed_requests_are_removed_from_both_files() {
    let folder = folder();
    let (out, errors) = (folder.path().join("out"), folder.path().join("errors"));
    let line = |id: &str, n: u32| {
        let text = format!("{{\"custom_id\":\"{id}\",\"body\":{{\"n\":{n}}}}}");
        let entry = Reader::new(text.as_bytes(), "/v1/x").next().expect("a line").expect("text");
        let ParsedLine::Request(line) = &entry else { panic!("{entry:?}") };
        (entry.clone(), line.hash)
    };
    run(&out, &["a", "b", "c"].map(|id| ok(id).with_hash(line(id, 1).1)));
    run(&errors, &["d", "e"].map(|id| refused(id).with_hash(line(id, 1).1)));
    let before = fs::read(&out).expect("the file exists");

    let earlier = EarlierResults::read(&out, Some(&errors), false).expect("both files are valid");
    let known = [("a", 1), ("b", 2), ("d", 1), ("e", 2), ("f", 1)]
        .map(|(id, n)| earlier.done().status(&line(id, n).0));
    use LineStatus::{Changed, Failed, Open, Succeeded};
    assert_eq!(known, [Succeeded, Changed, Failed, Changed, Open]);
    assert_eq!(fs::read(&out).expect("the file exists"), before, "the output is unchanged");
    let mut changed = Ids::default();
    for id in ["b", "e"] {
        changed.insert(Id::of(id), 1).expect("the id is new");
    }
    let (output, done) = Output::resume(earlier, &changed).expect("the sync succeeds");
    assert_eq!((done.succeeded(), done.failed(), done.again()), (2, 1, 2));
    std::mem::forget(output);
    assert_eq!((ids(&out), ids(&errors)), (vec!["a".into(), "c".into()], vec!["d".into()]));
}

#[test]
fn permanent_failures_are_removed_on_request() {
    let folder = folder();
    let path = folder.path().join("out");
    run(&path, &[ok("a"), refused("b"), retryable("c")]);
    let earlier = EarlierResults::read(&path, None, true).expect("the file is valid");
    assert!(earlier.done().contains("a") && !earlier.done().contains("b"));
    let (_output, done) = Output::resume(earlier, &Ids::default()).expect("the sync succeeds");
    assert_eq!((done.failed(), done.again(), ids(&path)), (0, 2, vec!["a".to_owned()]));
}

#[test]
fn invalid_request_hash_is_error_with_line() {
    let folder = folder();
    let path = folder.path().join("out");
    run(&path, &[ok("a"), ok("b").with_hash(RequestHash::of("/v1/x", b"{}"))]);
    let text = fs::read_to_string(&path).expect("text");
    let edited = text.replace("\"request_hash\":\"", "\"request_hash\":\"z");
    assert_ne!(edited, text);
    fs::write(&path, &edited).expect("the write succeeds");
    let error = Output::open(&path, None).expect_err("an invalid hash").to_string();
    let reason = "line 2 is not a batch result";
    assert!(error.contains(reason) && error.contains("32 hexadecimal digits"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("text"), edited);
}

#[test]
fn lines_of_openai_output_count_as_finished() {
    let folder = folder();
    let path = folder.path().join("out");
    let line = r#"{"id": "batch_req_1", "custom_id": "a", "response": {"status_code": 200, "request_id": "r", "body": {}}, "error": null}"#;
    fs::write(&path, format!("{line}\n\n{}", line.replace("\"a\"", "\"b\"")))
        .expect("the write succeeds");
    let (_output, done) = Output::open(&path, None).expect("the file opens");
    assert_eq!((done.succeeded(), done.contains("a"), done.contains("b")), (2, true, true));
    let text = fs::read_to_string(&path).expect("text");
    assert!(text.ends_with("null}\n"), "the missing newline was added: {text}");
}

fn numbered(count: usize) -> Reader<std::io::Cursor<String>> {
    let line = |n| format!("{{\"custom_id\":\"{n}\",\"body\":{{}}}}\n");
    let text: String = (0..count).map(line).collect();
    let mut reader = Reader::new(std::io::Cursor::new(text), "/v1/x");
    assert_eq!(reader.by_ref().count(), count);
    reader
}

#[test]
fn ordered_output_is_sorted_after_resume() {
    let folder = folder();
    let path = folder.path().join("out");
    run(&path, &[ok("7"), retryable("1"), ok("3"), refused("9")]);
    let (mut output, done) = Output::open(&path, None).expect("the file opens");
    for n in (0..10).rev().filter(|n: &i32| !done.contains(&n.to_string())) {
        let long = BatchResponse::new(200, format!("{{\"x\":\"{}\"}}", "y".repeat(20_000)));
        output.write(&Outcome::succeeded(n.to_string(), long)).expect("the write succeeds");
    }
    output.finish_in_order(numbered(10).ids()).expect("the sync succeeds");
    let expected: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(ids(&path), expected);
    let (output, done) = Output::open(&path, None).expect("the file opens again");
    assert_eq!((done.succeeded(), done.failed()), (9, 1));
    output.finish_in_order(numbered(10).ids()).expect("the sync succeeds");
    assert_eq!(ids(&path), expected);
}

#[test]
fn ordered_output_ends_with_removed_requests() {
    let folder = folder();
    let path = folder.path().join("out");
    run(&path, &[ok("x"), ok("1"), ok("y"), ok("0")]);
    let (output, _) = Output::open(&path, None).expect("the file opens");
    output.finish_in_order(&numbered(2).into_ids()).expect("the sync succeeds");
    assert_eq!(ids(&path), ["0", "1", "x", "y"]);
}

#[cfg(unix)]
#[test]
fn rewrite_keeps_permissions_and_removes_temporary_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("out");
    run(&path, &[ok("a"), retryable("b")]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
        .expect("the permissions are changed");
    // The temporary file of an interrupted rewrite.
    fs::write(folder.path().join("out.paceline-tmp"), "half").expect("the write succeeds");
    let (_output, done) = Output::open(&path, None).expect("the file opens");
    assert_eq!((done.again(), ids(&path)), (1, vec!["a".to_owned()]));
    assert_eq!(fs::metadata(&path).expect("the file exists").permissions().mode() & 0o777, 0o600);
    let names: BTreeSet<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    assert_eq!(names, BTreeSet::from(["out".to_owned(), "out.lock".to_owned()]));
}

/// Runs itself in a shell that limits files to a few kilobytes, as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn partial_write_on_full_disk_is_truncated() {
    const NAME: &str = "partial_write_on_full_disk_is_truncated";
    if let Some(path) = std::env::var_os("PACELINE_TEST_FULL") {
        return write_until_full(Path::new(&path));
    }
    let folder = folder();
    let path = folder.path().join("out");
    let command = test_command(module_path!(), NAME, "PACELINE_TEST_FULL", &path);
    let child = with_full_disk(&command).output().expect("a shell");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let found = ids(&path);
    assert_eq!((found.first(), found.last()), (Some(&"0".into()), Some(&"short".into())));
}

#[cfg(target_os = "linux")]
fn write_until_full(path: &Path) {
    let (mut output, _) = Output::open(path, None).expect("the file opens");
    let long = |n: u32| {
        let body = format!("{{\"x\":\"{}\"}}", "y".repeat(701));
        Outcome::succeeded(n.to_string(), BatchResponse::new(200, body))
    };
    let error = (0..100).find_map(|n| output.write(&long(n)).err()).expect("the disk is full");
    assert!(error.to_string().contains("out: cannot write: "), "{error}");
    output.write(&ok("short")).expect("a short line still fits");
}

#[test]
fn failure_is_retryable_by_status() {
    assert!(Failure::new("timeout", "").retryable().is_retryable());
    assert!(!Failure::new("too_large", "").is_retryable());
    for (status, is_retryable) in
        [(400, false), (401, true), (403, false), (404, false), (422, false)]
    {
        assert_eq!(Failure::http(status, "").is_retryable(), is_retryable, "{status}");
    }
    for status in [408, 429, 500, 503, 529] {
        let failure = Failure::http(status, "later");
        assert!(failure.is_retryable(), "{status}");
        assert_eq!((failure.code(), failure.message()), (&*format!("http_{status}"), "later"));
    }
}
