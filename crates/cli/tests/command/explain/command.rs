//! Runs of `paceline explain`.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::rig::{chat, exchange, har, lines, paceline, text, usage};

#[test]
fn json_lines_are_in_order_of_files_and_entries() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = exchange(&chat(), &usage(12, 9));
    fs::write(folder.path().join("a.har"), har(&[one.clone(), one.clone()]))
        .expect("the file is written");
    fs::write(folder.path().join("b.jsonl"), format!("{one}\n{one}\n"))
        .expect("the file is written");
    let output = paceline(folder.path(), &["--json", "b.jsonl", "./a.har"])
        .output()
        .expect("the command runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let places: Vec<_> =
        lines(&output).iter().map(|l| (l["file"].clone(), l["index"].clone())).collect();
    let place = |file: &str, index: usize| (json!(file), json!(index));
    let expected =
        [place("b.jsonl", 0), place("b.jsonl", 1), place("./a.har", 0), place("./a.har", 1)];
    assert_eq!(places, expected);
    assert!(text(&output.stderr).starts_with("4 exchanges"), "the summary is on stderr");
}

#[test]
fn default_output_is_table_and_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.har"), har(&[exchange(&chat(), &usage(12, 9))]))
        .expect("the file is written");
    let output = paceline(folder.path(), &["a.har"]).output().expect("the command runs");
    let shown = text(&output.stdout);
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("a.har"));
    assert!(lines.next().is_some_and(|heading| heading.contains("charge")), "{shown}");
    assert!(lines.next().is_some_and(|row| row.contains("gpt-4o")), "{shown}");
    assert!(shown.contains("1 exchange\n") && shown.contains("median"), "{shown}");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn unreadable_files_are_named_and_others_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = har(&[exchange(&chat(), &usage(12, 9)), exchange(&chat(), &usage(12, 9))]);
    fs::write(folder.path().join("whole.har"), &whole).expect("the file is written");
    fs::write(folder.path().join("cut.har"), &whole[..whole.len() - 20])
        .expect("the file is written");
    fs::write(folder.path().join("note.txt"), "s3cret").expect("the file is written");
    let files = ["--json", "gone.har", "cut.har", "note.txt", "whole.har"];
    let output = paceline(folder.path(), &files).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(lines(&output).len(), 3);
    let output = text(&output.stderr);
    for part in
        ["gone.har: no such file", "cut.har: truncated in", "note.txt: invalid JSON at line 1"]
    {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(!output.contains("s3cret"), "{output}");
    assert_eq!(
        paceline(folder.path(), &[]).output().expect("the command runs").status.code(),
        Some(2)
    );
}

#[test]
fn standard_input_is_explained_incrementally() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = paceline(folder.path(), &["--json", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    for index in 0..3 {
        writeln!(stdin, "{}", exchange(&chat(), &usage(12, 9))).expect("the command reads stdin");
        let mut line = String::new();
        // The input is still open: the line must be printed before its end.
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("the command prints a line");
        let line: serde_json::Value = serde_json::from_str(&line).expect("a line is JSON");
        assert_eq!((&line["file"], &line["index"]), (&json!("-"), &json!(index)));
    }
    drop(stdin);
    assert!(child.wait().expect("the process is awaited").success());
}

#[test]
fn closed_output_ends_command_silently() {
    let folder = tempfile::tempdir().expect("a folder");
    let many = vec![exchange(&chat(), &usage(12, 9)); 2_000];
    fs::write(folder.path().join("a.har"), har(&many)).expect("the file is written");
    for args in [&["a.har", "a.har"][..], &["--json", "a.har"]] {
        let mut command = paceline(folder.path(), args);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the process is awaited");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    }
}
