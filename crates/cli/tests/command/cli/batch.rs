//! `paceline batch` with a configuration and a store.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Child;

use serde_json::json;

use super::rig::{TestHome, ended};
use paceline_testing::process::ChildGuard;

/// Returns a home with ten requests in `in.jsonl`.
fn home() -> TestHome {
    let home = TestHome::new();
    let line = |n: usize| {
        let body = json!({"model": "gpt-4o", "max_tokens": 20,
                          "messages": [{"role": "user", "content": "Hi"}]});
        json!({"custom_id": format!("r{n}"), "method": "POST", "url": "/v1/chat/completions",
               "body": body})
        .to_string()
    };
    home.write("in.jsonl", &(0..10).map(line).collect::<Vec<_>>().join("\n"));
    home
}

fn results(home: &TestHome) -> usize {
    fs::read_to_string(home.path("out.jsonl")).unwrap_or_default().lines().count()
}

/// Reads stderr until the notice that a daily limit is exhausted, and returns it.
fn read_exhausted_notice(child: &mut Child) -> String {
    let stderr = BufReader::new(child.stderr.as_mut().expect("a pipe"));
    let mut lines = stderr.lines().map(|line| line.expect("text"));
    lines.find(|line| line.contains("resuming in")).expect("the notice is printed")
}

#[cfg(unix)]
#[test]
fn exhausted_daily_limit_stays_exhausted_in_next_run() {
    for how in ["--store s.db", "--store s.yaml", "--config c.yaml --store t.db"] {
        let home = home();
        home.write("c.yaml", "quotas: {'gpt-*': {rpd: 5, rpm: 100}}");
        let limits = if how.contains("config") { "" } else { "--rpd 5" };
        let run = format!("batch in.jsonl -o out.jsonl --simulate {limits} {how}");
        let fixed = if limits.is_empty() { "" } else { "--algorithm fixed-window" };
        let run = format!("{run} {fixed}");
        let mut first = ChildGuard::start(&mut home.paceline(&run));
        let output = read_exhausted_notice(first.get_mut());
        assert!(
            output.starts_with("paceline: gpt-4o: ") && output.contains("requests in 24 h"),
            "{output}"
        );
        first.signal("-INT");
        assert_eq!(ended(first).code, Some(130), "{how}");
        let sent = results(&home);
        assert!((4..=5).contains(&sent), "{sent} of 5");

        let mut second = ChildGuard::start(&mut home.paceline(&run));
        read_exhausted_notice(second.get_mut());
        second.signal("-INT");
        assert_eq!(ended(second).code, Some(130));
        assert_eq!(results(&home), sent, "nothing more is sent today: {how}");
    }
}

#[cfg(unix)]
#[test]
fn run_without_store_starts_fresh() {
    let home = home();
    home.write("c.yaml", "store: {sqlite: s.db}");
    // A trial run ignores the configured store.
    let run =
        "batch in.jsonl -o out.jsonl --simulate --rpd 5 --algorithm fixed-window --config c.yaml";
    for sent in [5, 10] {
        let mut child = ChildGuard::start(&mut home.paceline(run));
        if sent == 5 {
            read_exhausted_notice(child.get_mut());
            child.signal("-INT");
        }
        ended(child);
        assert_eq!(results(&home), sent);
    }
    assert!(!home.path("s.db").exists());
}

#[test]
fn argument_limits_replace_configured_quotas() {
    let home = home();
    home.write("c.yaml", "quotas: {gpt-4o: {rpd: 1}}");
    let output = home.run("batch in.jsonl -o out.jsonl --simulate --config c.yaml --rpm 100");
    assert_eq!((output.code, results(&home)), (Some(0), 10), "{output:?}");
}

#[cfg(unix)]
#[test]
fn changed_configuration_is_reloaded_during_run() {
    let home = home();
    let config = home.write("c.yaml", "quotas: {gpt-4o: {rpd: 3}}");
    let run = "batch in.jsonl -o out.jsonl --simulate --config c.yaml";
    let mut child = ChildGuard::start(&mut home.paceline(run));
    read_exhausted_notice(child.get_mut());
    // An invalid file is ignored.
    fs::write(&config, "quotas: {gpt-4o: {rdp: 3}}").expect("the file is written");
    let mut stderr = BufReader::new(child.get_mut().stderr.take().expect("a pipe"));
    let mut received = String::new();
    while !received.contains("did you mean `rpd`") {
        assert_ne!(stderr.read_line(&mut received).expect("text"), 0, "{received}");
    }
    fs::write(&config, "quotas: {gpt-4o: {rpd: 1000}}").expect("the file is written");
    stderr.read_to_string(&mut received).expect("text");
    assert_eq!((ended(child).code, results(&home)), (Some(0), 10), "{received}");
    assert!(received.contains("configuration changed: quotas.gpt-4o"), "{received}");
}

#[cfg(unix)]
#[test]
fn queued_requests_follow_quotas_after_removal() {
    let home = home();
    let config = home.write("c.yaml", "quotas: {gpt-4o: {rpd: 3}, other: {rpm: 1}}");
    let run = "batch in.jsonl -o out.jsonl --simulate --config c.yaml";
    let mut child = ChildGuard::start(&mut home.paceline(run));
    read_exhausted_notice(child.get_mut());
    fs::write(&config, "quotas: {other: {rpm: 1}}").expect("the file is written");
    let output = ended(child);
    assert_eq!((output.code, results(&home)), (Some(0), 10), "{output:?}");
}

#[cfg(unix)]
#[test]
fn reset_resumes_run_waiting_for_daily_limit() {
    let home = home();
    home.write("c.yaml", "quotas: {gpt-4o: {rpd: 5, algorithm: fixed_window}}");
    let run = "batch in.jsonl -o out.jsonl --simulate --config c.yaml --store s.db";
    let mut child = ChildGuard::start(&mut home.paceline(run));
    read_exhausted_notice(child.get_mut());
    while home.run("reset gpt-4o --store s.db").code != Some(0) {}
    let output = ended(child);
    assert_eq!((output.code, results(&home)), (Some(0), 10), "{output:?}");
    let parts = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    let output = output.stdout.lines().map(parts).find(|parts| parts[0] == "utilization");
    assert_eq!(
        output.expect("the row exists")[1],
        "-",
        "a run faster than its limits has no utilization"
    );
}

#[cfg(unix)]
#[test]
fn model_name_control_characters_are_escaped() {
    let home = home();
    let input = fs::read_to_string(home.path("in.jsonl")).expect("text");
    home.write("in.jsonl", &input.replace("gpt-4o", "gpt\\u001b[2J"));
    let run = "batch in.jsonl -o out.jsonl --simulate --rpd 3 --algorithm fixed-window";
    let mut child = ChildGuard::start(&mut home.paceline(run));
    let output = read_exhausted_notice(child.get_mut());
    assert!(output.starts_with("paceline: gpt\\u{1b}[2J: 3 of 3"), "{output:?}");
    child.signal("-INT");
    ended(child);
}

#[test]
fn unusable_store_fails_before_sending() {
    let home = home();
    home.write("s.db", "no database at all");
    let output = home.run("batch in.jsonl -o out.jsonl --simulate --store s.db");
    assert_eq!((output.code, results(&home)), (Some(2), 0));
    assert!(output.stderr.contains("s.db: "), "{output:?}");
}
