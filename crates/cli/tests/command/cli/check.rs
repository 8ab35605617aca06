//! `paceline check`.

use serde_json::{Value, json};

use super::rig::TestHome;
use super::stores::{closed, take, two_keys};

fn home() -> TestHome {
    let home = TestHome::new();
    two_keys(&home.path("s.db"));
    home
}

#[test]
fn check_prints_decision_and_reason() {
    let home = home();
    let fits = home.run("check gpt-4o 17000 --store s.db");
    assert_eq!(
        (fits.code, fits.stdout.lines().next()),
        (Some(0), Some("allowed (ok)")),
        "{fits:?}"
    );
    let short = home.run("check gpt-4o 20000 --store s.db");
    let first = short.stdout.lines().next().expect("a line");
    assert_eq!((short.code, short.stderr.as_str()), (Some(1), ""));
    let begin = "refused (tpm_exceeded): not enough tokens left; retry in ";
    assert!(first.starts_with(begin), "{first}");
    assert!(short.stdout.contains("12,345 / 30,000"), "{}", short.stdout);
    let never = home.run("check gpt-4o 40000 --store s.db");
    assert_eq!(never.code, Some(1));
    let begin =
        "refused (exceeds_capacity): the request needs 40,000 tokens, the limit allows at most";
    assert!(never.stdout.starts_with(begin), "{never:?}");
}

#[test]
fn check_json_has_decision_and_usage() {
    let output = home().run("check gpt-4o 20000 --json --store s.db");
    let checked = output.json();
    let fields = ["allowed", "code", "dimension", "need", "key"].map(|name| &checked[name]);
    let expected =
        [json!(false), json!("tpm_exceeded"), json!("tokens"), json!(20_000), json!("gpt-4o")];
    assert_eq!(fields, expected.each_ref());
    let after = checked["retry_after_s"].as_f64().expect("a number");
    assert!(after > 0.0 && after <= 61.0, "{after}");
    assert!(checked["retry_at"].as_str().is_some_and(|at| at.ends_with('Z')));
    assert_eq!(checked["limits"][1]["used"], json!(12_345));
}

#[test]
fn check_consumes_no_quota() {
    let home = home();
    let used =
        || home.run("show --json --store s.db").json()["keys"][1]["limits"][1]["used"].clone();
    for _ in 0..3 {
        assert_eq!(home.run("check gpt-4o 17000 --store s.db").code, Some(0));
    }
    assert_eq!(used(), json!(12_345));
}

#[test]
fn invalid_tokens_are_rejected() {
    let home = home();
    for tokens in ["-5", "many", "1.5", "18446744073709551616", "1e3", "\u{1b}[31m"] {
        let output = super::rig::output_of(home.paceline("check gpt-4o").arg(tokens));
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{tokens}");
        assert!(output.stderr.starts_with("paceline: invalid_tokens: "), "{output:?}");
        assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
        let output = super::rig::output_of(home.paceline("check gpt-4o --json").arg(tokens));
        assert_eq!((output.code, &output.json()["code"]), (Some(2), &json!("invalid_tokens")));
    }
    let most = home.run("check gpt-4o 18446744073709551615 --json --store s.db");
    assert_eq!((most.code, &most.json()["code"]), (Some(1), &json!("exceeds_capacity")));
}

#[test]
fn requests_input_and_output_count_too() {
    let home = TestHome::new();
    home.write("c.yaml", "quotas: {m: {rpm: 10, itpm: 1000, otpm: 100}}");
    for (rest, code) in [
        ("500", "ok"),
        ("500 --requests 11", "exceeds_capacity"),
        ("2000", "exceeds_capacity"),
        ("2000 --input 900", "ok"),
        ("1050 --output 80", "ok"),
        ("500 --output 101", "exceeds_capacity"),
    ] {
        let output = home.run(&format!("check m {rest} --config c.yaml --json"));
        assert_eq!(output.json()["code"], json!(code), "{rest}");
    }
}

#[test]
fn unknown_key_follows_policy() {
    let home = TestHome::new();
    let output = home.run("check unknown 5 --json");
    assert_eq!((output.code, &output.json()["code"]), (Some(0), &json!("unknown_model")));
    home.write("c.yaml", "unknown_key: refuse");
    let output = home.run("check unknown 5 --json --config c.yaml");
    assert_eq!((output.code, &output.json()["code"]), (Some(1), &json!("unknown_model")));
    assert_eq!(output.json()["retry_at"], Value::Null);
}

#[test]
fn exhausted_daily_limit_stays_exhausted() {
    let home = TestHome::new();
    closed(&home.path("s.db"), |limiter| (0..50).for_each(|_| take(limiter, "claude-y", 0)));
    let output = home.run("check claude-y 1 --json --store s.db").json();
    assert_eq!((&output["allowed"], &output["code"]), (&json!(false), &json!("rpd_exceeded")));
    assert!(output["retry_after_s"].as_f64().is_some_and(|wait| wait > 86_000.0), "{output}");
}
