//! `paceline show`.

use std::time::Duration;

use paceline::Timestamp;
use paceline::limiter::{
    KeyChanges, LearnedLimit, Limiter, RateLimited, Refusal, RefusalKind, Utilization,
};
use paceline::quota::{Cost, Dimension, Quota, Usd};
use paceline::store::{Sqlite, Store};
use serde_json::{Value, json};

use super::rig::{CommandOutput, TestHome, output_of};
use super::stores::{closed, open, take, two_keys};
#[cfg(unix)]
use paceline_testing::process::InteractiveProcess;

const CONFIG: &str = "\
quotas:
  gpt-4o: {limits: [{dimension: tokens, limit: 20000, window: 60s, algorithm: sliding_window}]}
  never-used: {rpm: 5}
store: {sqlite: mine.db}
";

#[test]
fn default_store_is_shown_with_stored_limits() {
    let home = TestHome::new();
    two_keys(&home.path("state/paceline/state.db"));
    let output = home.run("show");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let lines: Vec<_> = output.stdout.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[2]),
        (6, "claude-x  (quota claude-*)", "gpt-4o"),
        "{}",
        output.stdout
    );
    let parts = |line: &str| {
        let parts: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        (parts[0].clone(), parts[2..5].join(" "))
    };
    assert_eq!(parts(lines[1]), ("requests/day".to_owned(), "2 / 50".to_owned()));
    assert_eq!(parts(lines[4]), ("tokens/minute".to_owned(), "12,345 / 30,000".to_owned()));
    assert!(lines[4].contains("[####") && lines[4].contains("resets in "), "{}", lines[4]);
    assert!(lines.iter().all(|line| line.chars().count() <= 80 && !line.contains('\u{1b}')));
}

#[test]
fn spending_of_tenants_and_accounts_is_shown_as_money() {
    let home = TestHome::new();
    let config = "quotas: {'tenant:*': {usd_per_day: 50}, account: {usd_per_day: 0.25}}\n\
                  store: {sqlite: s.db}\n";
    home.write("t.yaml", config);
    let quota = |micros| Quota::new().usd_per_day(Usd::from_micros(micros));
    let limiter = Limiter::builder().quota("tenant:*", quota(50_000_000));
    let limiter = limiter.quota("account", quota(250_000)).build().expect("a limiter");
    let hour = std::time::Duration::from_secs(3_600);
    let store = Sqlite::new(home.path("s.db"));
    paceline::store::Persistence::start(&limiter, store, hour).expect("the store opens");
    for (key, micro_dollars) in [("tenant:7", 12_500_000), ("account", 1_234)] {
        let cost = Cost::new().custom("usd", micro_dollars);
        limiter.try_acquire(key, &cost).expect("it fits").settle(&cost);
    }
    drop(limiter);
    let output = home.run("show --config t.yaml");
    assert_eq!(output.code, Some(0), "{output:?}");
    for expected in ["usd/day", "$12.50 / $50.00", "$0.001234 / $0.25"] {
        assert!(output.stdout.contains(expected), "{expected}: {}", output.stdout);
    }
    // The tenant has $37.50 left.
    let checked = home.run("check tenant:7 0 --config t.yaml --json").json();
    assert_eq!(checked["limits"][0]["available"], 37_500_000, "{checked}");
}

#[test]
fn total_is_shown_without_a_reset_until_it_is_reset() {
    let home = TestHome::new();
    home.write("t.yaml", "quotas: {s: {usd_total: 2, tokens_total: 100}}\nstore: {sqlite: s.db}\n");
    let quota = Quota::new().usd_total(Usd::from_dollars(2)).tokens_total(100);
    let limiter = Limiter::builder().quota("s", quota).build().expect("a limiter");
    let hour = std::time::Duration::from_secs(3_600);
    let store = Sqlite::new(home.path("s.db"));
    paceline::store::Persistence::start(&limiter, store, hour).expect("the store opens");
    let cost = Cost::new().tokens(60).usd(Usd::from_micros(1_500_000));
    limiter.try_acquire("s", &cost).expect("it fits").settle(&cost);
    drop(limiter);
    let shown = home.run("show --config t.yaml").stdout;
    for expected in ["usd/total", "$1.50 / $2.00", "tokens/total", "60 / 100"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("resets in"), "{shown}");
    let limit = home.run("show --config t.yaml --json").json()["keys"][0]["limits"][0].clone();
    assert_eq!((&limit["window_s"], &limit["resets_at"]), (&Value::Null, &Value::Null), "{limit}");
    let refused = home.run("check s 50 --config t.yaml --json");
    assert_eq!((refused.code, &refused.json()["code"]), (Some(1), &json!("unknown_price")));
    let reason = refused.json()["reason"].to_string();
    assert!(reason.contains("knows no price of the request"), "{reason}");
    assert_eq!(home.run("reset s --config t.yaml").code, Some(0));
    assert!(home.run("show --config t.yaml").stdout.contains("$0.00 / $2.00"));
}

#[test]
fn longest_wait_of_a_key_is_shown() {
    let home = TestHome::new();
    let quotas = "quotas: {a: {rpm: 5, max_wait: 90s}, b: {rpm: 5, mode: reject}, c: {rpm: 5}}\n";
    home.write("t.yaml", &format!("{quotas}store: {{sqlite: s.db}}\n"));
    home.write("w.yaml", &format!("{quotas}store: {{sqlite: s.db}}\nwaiting: {{max_wait: 60s}}\n"));
    let headings = |config: &str| {
        let shown = home.run(&format!("show --config {config}")).stdout;
        shown.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect::<Vec<_>>()
    };
    let wait = |key, wait| format!("{key}  (requests wait for up to {wait})");
    let reject = "b  (refuses instead of waiting)".to_owned();
    assert_eq!(headings("t.yaml"), [wait("a", "1m 30s"), reject.clone(), "c".to_owned()]);
    assert_eq!(headings("w.yaml"), [wait("a", "1m"), reject, wait("c", "1m")]);
    let keys = home.run("show --config t.yaml --json").json()["keys"].clone();
    let waits = [0, 1, 2].map(|key| keys[key]["max_wait_s"].clone());
    assert_eq!(waits, [json!(90.0), json!(0.0), Value::Null]);
    let checked = home.run("check b 1 --config t.yaml");
    assert!(checked.stdout.contains("b  (refuses instead of waiting)"), "{checked:?}");
    let checked = home.run("check a 1 --config t.yaml --json").json();
    assert_eq!(checked["max_wait_s"], json!(90.0));
    let help = home.run("serve --help").stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("waits for up to 4 minutes, or for `waiting.max_wait`"), "{help}");
}

#[test]
fn store_format_is_detected_from_content() {
    for (written, named) in [("s.yaml", "s.db"), ("s.db", "s.yaml"), ("s.yaml", "s.bak")] {
        let home = TestHome::new();
        two_keys(&home.path(written));
        std::fs::rename(home.path(written), home.path(named)).expect("renamed");
        let output = home.run(&format!("show gpt-4o --store {named}"));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stdout.contains("12,345 / 30,000"), "{output:?}");
        assert_eq!(home.run(&format!("reset gpt-4o --store {named}")).code, Some(0));
        assert!(home.run(&format!("show gpt-4o --store {named}")).stdout.contains("  0 / 30,000"));
    }
}

#[test]
fn unreadable_store_is_error() {
    let home = TestHome::new();
    home.write("file", "no folder");
    for command in ["show", "check gpt-4o 1", "reset --all"] {
        let output = home.run(&format!("{command} --store file/state.db"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
        assert!(output.stderr.starts_with("paceline: file/state.db: "), "{output:?}");
    }
}

#[test]
fn show_json_has_usage_on_one_line() {
    let home = TestHome::new();
    let path = home.path("my.yaml");
    two_keys(&path);
    let output = home.run("show gpt-* --json --store my.yaml");
    assert_eq!((output.code, output.stdout.lines().count()), (Some(0), 1), "{output:?}");
    let shown = output.json();
    assert_eq!((&shown["store"], &shown["config"]), (&json!("my.yaml"), &Value::Null));
    assert_eq!((shown["keys"].as_array().map(Vec::len), &shown["missing"]), (Some(1), &json!([])));
    let tokens = &shown["keys"][0]["limits"][1];
    let fields = ["dimension", "window_s", "limit", "original", "used", "held"].map(|n| &tokens[n]);
    let expected =
        [json!("tokens"), json!(60.0), json!(30_000), json!(30_000), json!(12_345), json!(0)];
    assert_eq!(fields, expected.each_ref());
    let (now, resets) = (shown["at"].as_str().unwrap(), tokens["resets_at"].as_str().unwrap());
    assert!(resets > now && resets.ends_with('Z'), "{now} {resets}");
}

/// Adds the changes of a key to the store.
fn add_changes(home: &TestHome, change: KeyChanges, now: Timestamp) {
    let mut store = Sqlite::new(home.path("s.db"));
    store.open(now).unwrap();
    store.sync(&[change], None, now).unwrap();
    store.close(now).unwrap();
}

#[test]
fn utilization_is_shown_with_time_until_reset() {
    let home = TestHome::new();
    two_keys(&home.path("s.db"));
    let now = Limiter::builder().build().unwrap().now();
    let mut window = Utilization::new("5h", 0.925);
    window.observed_at = now;
    window.resets_at = Some(now + std::time::Duration::from_secs(9_000));
    let mut change = KeyChanges::new("gpt-4o");
    change.utilization = Some(vec![window]);
    add_changes(&home, change, now);
    let output = home.run("show gpt-4o --store s.db");
    let last = output.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("  5h window 92.5 % used, resets in 2h"), "{output:?}");
    let shown = home.run("show gpt-4o --json --store s.db").json();
    let windows = &shown["keys"][0]["utilization"];
    let fields = ["window", "used", "held_to"].map(|name| &windows[0][name]);
    assert_eq!(fields, [&json!("5h"), &json!(0.925), &json!(null)]);
    assert!(windows[0]["resets_at"].as_str().unwrap() > shown["at"].as_str().unwrap(), "{shown}");
}

#[test]
fn learned_limits_are_shown_with_rate_of_quota_and_age() {
    let home = TestHome::new();
    two_keys(&home.path("s.db"));
    let now = Limiter::builder().build().unwrap().now();
    let measured_at = now - std::time::Duration::from_secs(7_200);
    let mut limit = LearnedLimit::new(Dimension::Requests, 2.0, measured_at, 3);
    limit.configured = Some(8.333);
    let mut change = KeyChanges::new("gpt-4o");
    change.learned = Some(vec![limit]);
    add_changes(&home, change, now);
    let output = home.run("show gpt-4o --store s.db");
    let expected = "  learned 2 requests/s (told 8.33), measured 3 times, last 2h ago";
    assert_eq!(output.stdout.lines().last(), Some(expected), "{output:?}");
    let shown = home.run("show gpt-4o --json --store s.db").json();
    let learned = &shown["keys"][0]["learned"][0];
    let fields = ["dimension", "amount", "events"].map(|name| &learned[name]);
    assert_eq!(fields, [&json!("requests"), &json!(2.0), &json!(3)]);
    assert!(learned["measured_at"].as_str().unwrap() < shown["at"].as_str().unwrap(), "{shown}");
    // The rate doesn't hold back a check, which no program's requests precede.
    assert_eq!(home.run("check gpt-4o 1 --store s.db").code, Some(0));
}

#[test]
fn configuration_sets_limits_and_store() {
    let home = TestHome::new();
    two_keys(&home.path("mine.db"));
    home.write("paceline.yaml", CONFIG);
    let mut in_environment = home.paceline("show --json");
    in_environment.env("PACELINE_CONFIG", "paceline.yaml");
    home.write("config/paceline/config.yaml", &CONFIG.replace("mine.db", "../../mine.db"));
    for mut command in [
        home.paceline("show --json --config paceline.yaml"),
        in_environment,
        home.paceline("show --json"),
    ] {
        let shown = output_of(&mut command).json();
        let keys: Vec<_> =
            shown["keys"].as_array().unwrap().iter().map(|key| &key["key"]).collect();
        assert_eq!(keys, ["claude-x", "gpt-4o", "never-used"], "{shown}");
        let limits = &shown["keys"][1]["limits"];
        assert_eq!((&limits[0]["limit"], &limits[0]["used"]), (&json!(20_000), &json!(12_345)));
        assert_eq!(limits.as_array().map(Vec::len), Some(1));
        // The key has no quota in this configuration, but its usage is shown.
        let unlimited = &shown["keys"][0]["limits"][0];
        assert_eq!((&unlimited["limit"], &unlimited["used"]), (&Value::Null, &json!(2)));
    }
}

#[test]
fn key_matching_glob_is_shown_with_quota_name() {
    let home = TestHome::new();
    home.write(
        "c.yaml",
        "quotas: {'claude-*': {rpm: 50}, gpt-4o: {rpm: 5}}\nstore: {sqlite: s.db}",
    );
    let output = home.run("show claude-x gpt-4o --config c.yaml");
    assert_eq!(output.code, Some(0), "{output:?}");
    let lines: Vec<_> = output.stdout.lines().collect();
    assert_eq!((lines[0], lines[2]), ("claude-x  (quota claude-*)", "gpt-4o"), "{output:?}");
    assert!(lines[1].contains("requests/minute") && lines[1].contains("0 / 50"), "{output:?}");
    let shown = home.run("show claude-x --json --config c.yaml").json();
    assert_eq!(shown["keys"][0]["quota"], "claude-*", "{shown}");
    assert_eq!(shown["missing"], json!([]));
    let output = home.run("show mistral --config c.yaml");
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "mistral: no such key\n"));
}

#[test]
fn held_amount_is_shown_separately() {
    let home = TestHome::new();
    let limiter = open(&home.path("s.db"));
    let permit =
        limiter.try_acquire("gpt-4o", &Cost::new().tokens(4_000)).expect("the request fits");
    take(&limiter, "gpt-4o", 1_000);
    let mut shown = Value::Null;
    // Waits until the usage is written.
    for _ in 0..500 {
        shown = home.run("show gpt-4o --json --store s.db").json();
        if shown["keys"][0]["limits"][1]["held"] == json!(4_000) {
            break;
        }
    }
    let tokens = &shown["keys"][0]["limits"][1];
    assert_eq!((&tokens["used"], &tokens["held"]), (&json!(1_000), &json!(4_000)), "{shown}");
    drop(permit);
}

#[test]
fn empty_store_and_unknown_key_are_reported() {
    let home = TestHome::new();
    let output = home.run("show");
    assert_eq!(output.code, Some(0));
    let advice = "does not exist, and no `store` is configured; set one with --config, or name a state \
                  file with --store\n";
    assert!(
        output.stdout.starts_with("no usage: ") && output.stdout.ends_with(advice),
        "{output:?}"
    );
    let output = home.run("show --store new.db");
    let advice =
        "no usage: new.db does not exist; programs with this store create it at their start\n";
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), advice));
    closed(&home.path("s.db"), |_| ());
    let output = home.run("show --config /dev/null --store s.db");
    assert_eq!(output.code, Some(2), "an empty file is an invalid configuration: {output:?}");
    let output = home.run("show unknown --store s.db");
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "unknown: no such key\n"));
    assert_eq!(home.run("show unknown --json").json()["missing"], json!(["unknown"]));
}

#[test]
fn unreadable_files_are_named_and_unchanged() {
    let home = TestHome::new();
    for (name, content) in [("a.db", "no database at all"), ("a.yaml", "quotas: [x")] {
        let path = home.write(name, content);
        for arguments in
            ["show --store", "check m 5 --store", "reset m --store", "reset --all --store"]
        {
            let output = home.run(&format!("{arguments} {name}"));
            assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{arguments}");
            let named = output.stderr.starts_with("paceline: ") && output.stderr.contains(name);
            assert!(named, "{arguments} {output:?}");
        }
        assert_eq!(std::fs::read_to_string(path).expect("the file exists"), content);
    }
    home.write("bad.yaml", "quotas: {m: {rmp: 5}}");
    let output = home.run("show --config bad.yaml");
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("bad.yaml:1:14: quotas.m.rmp: "), "{output:?}");
}

#[test]
fn missing_home_error_names_option() {
    let home = TestHome::new();
    let mut command = home.paceline("show");
    command.env_remove("HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    let output = output_of(&mut command);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("set a path with --store"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn watch_prints_line_every_second_until_interrupted() {
    let home = TestHome::new();
    let limiter = open(&home.path("s.db"));
    let mut process =
        InteractiveProcess::start(&mut home.paceline("show --watch --json --store s.db"));
    let mut used = || -> Value {
        let line = process.read_line().expect("a line");
        let shown: Value = serde_json::from_str(&line).expect("a line is a document");
        shown["keys"][0]["limits"][0]["used"].clone()
    };
    let before = used();
    take(&limiter, "gpt-4o", 1);
    // The usage appears in one of the following lines.
    assert!((0..30).any(|_| used() == json!(1)), "{before}");
    process.guard().signal("-INT");
    let output = CommandOutput::from(process.output());
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn control_characters_in_keys_are_escaped() {
    let home = TestHome::new();
    closed(&home.path("s.db"), |limiter| take(limiter, "claude-\u{1b}[2J\n", 0));
    let output = home.run("show --store s.db");
    assert!(output.stdout.contains("claude-\\u{1b}[2J\\n"), "{output:?}");
    assert!(!output.stdout.contains('\u{1b}'));
}

#[test]
fn show_states_why_a_key_pauses() {
    for store in ["s.db", "s.yaml"] {
        let home = TestHome::new();
        closed(&home.path(store), |limiter| {
            let mut refusal = Refusal::new(RefusalKind::Window);
            refusal.delay = Some(Duration::from_secs(7_200));
            limiter.feedback().rate_limited("gpt-4o", &RateLimited::of(refusal));
        });
        let shown = home.run(&format!("show --store {store}"));
        let reason = ": a limit of an hour or longer is used up)";
        assert!(shown.stdout.lines().any(|line| line.ends_with(reason)), "{shown:?}");
        let shown = home.run(&format!("show --json --store {store}")).json();
        assert_eq!(shown["keys"][0]["cooling_kind"], json!("window"), "{shown}");
    }
}
