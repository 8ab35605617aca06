//! `paceline reset`.

use serde_json::json;

use super::rig::{TestHome, run_with_input};
use super::stores::{closed, open, take, two_keys};
use paceline::limiter::RateLimited;
use paceline::quota::Quota;

fn used(home: &TestHome, store: &str, key: &str) -> u64 {
    let shown = home.run(&format!("show {key} --json --store {store}")).json();
    shown["keys"][0]["limits"][0]["used"].as_u64().unwrap_or(0)
}

#[test]
fn reset_clears_one_key_and_keeps_others() {
    for store in ["s.db", "s.yaml"] {
        let home = TestHome::new();
        two_keys(&home.path(store));
        let output = home.run(&format!("reset gpt-4o --store {store}"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "reset usage of gpt-4o\n"));
        assert_eq!(
            (used(&home, store, "gpt-4o"), used(&home, store, "claude-x")),
            (0, 2),
            "{store}"
        );
    }
}

#[test]
fn reset_all_clears_all_keys() {
    for store in ["s.db", "s.yaml"] {
        let home = TestHome::new();
        two_keys(&home.path(store));
        let output = home.run(&format!("reset --all --json --store {store}"));
        assert_eq!(
            (output.code, &output.json()["reset"]),
            (Some(0), &json!(["claude-x", "gpt-4o"]))
        );
        assert_eq!(
            (used(&home, store, "gpt-4o"), used(&home, store, "claude-x")),
            (0, 0),
            "{store}"
        );
    }
}

#[test]
fn reset_without_key_in_script_is_error() {
    let home = TestHome::new();
    two_keys(&home.path("s.db"));
    let output = run_with_input(&mut home.paceline("reset --store s.db"), b"y\n");
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert_eq!(output.stderr, "paceline: KEY: missing; name a key, or reset all keys with --all\n");
    assert_eq!(used(&home, "s.db", "claude-x"), 2);
    assert_eq!(home.run("reset gpt-4o --all --store s.db").code, Some(2));
}

#[test]
fn unknown_key_error_suggests_similar_keys() {
    let home = TestHome::new();
    two_keys(&home.path("s.db"));
    let output = home.run("reset gpt4o --store s.db");
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert_eq!(output.stderr, "paceline: gpt4o: no such key in s.db; did you mean gpt-4o?\n");
    let output = home.run("reset gpt-4o --store gone.db");
    assert_eq!(output.code, Some(1));
    assert!(!home.path("gone.db").exists(), "no file is created");
}

#[test]
fn empty_key_is_never_suggested() {
    let home = TestHome::new();
    closed(&home.path("s.db"), |limiter| {
        limiter.quotas().set("*", &Quota::new().rpd(5)).unwrap();
        take(limiter, "", 0);
    });
    let output = home.run("reset gpt-4o --store s.db");
    assert_eq!(output.stderr, "paceline: gpt-4o: no such key in s.db\n");
}

#[test]
fn running_program_resets_too() {
    let home = TestHome::new();
    let limiter = open(&home.path("s.db"));
    take(&limiter, "gpt-4o", 12_345);
    for _ in 0..5 {
        limiter.feedback().rate_limited("gpt-4o", &RateLimited::default().overloaded());
    }
    // Waits until the usage is written.
    while used(&home, "s.db", "gpt-4o") == 0 {}
    let is_reset = || {
        let stats = limiter.stats("gpt-4o");
        stats.outage.is_none() && stats.limits.iter().all(|limit| limit.used == 0)
    };
    assert!(!is_reset());
    assert_eq!(home.run("reset gpt-4o --store s.db").code, Some(0));
    // The program syncs every 20 ms; each command takes longer than a millisecond.
    assert!((0..5_000).any(|_| is_reset() || home.run("config path").code.is_none()));
}
