//! `tollgate reset`.

use serde_json::json;

use super::rig::{Home, told_of};
use super::stores::{closed, open, take, two_keys};
use tollgate::quota::Quota;

fn used(home: &Home, store: &str, key: &str) -> u64 {
    let shown = home.run(&format!("show {key} --json --store {store}")).json();
    shown["keys"][0]["limits"][0]["used"].as_u64().unwrap_or(0)
}

#[test]
fn one_key_is_forgotten_and_the_others_stay() {
    for store in ["s.db", "s.yaml"] {
        let home = Home::new();
        two_keys(&home.path(store));
        let told = home.run(&format!("reset gpt-4o --store {store}"));
        assert_eq!((told.code, told.stdout.as_str()), (Some(0), "reset usage of gpt-4o\n"));
        assert_eq!(
            (used(&home, store, "gpt-4o"), used(&home, store, "claude-x")),
            (0, 2),
            "{store}"
        );
    }
}

#[test]
fn all_keys_are_forgotten_where_that_is_said() {
    for store in ["s.db", "s.yaml"] {
        let home = Home::new();
        two_keys(&home.path(store));
        let told = home.run(&format!("reset --all --json --store {store}"));
        assert_eq!((told.code, &told.json()["reset"]), (Some(0), &json!(["claude-x", "gpt-4o"])));
        assert_eq!(
            (used(&home, store, "gpt-4o"), used(&home, store, "claude-x")),
            (0, 0),
            "{store}"
        );
    }
}

#[test]
fn without_a_key_a_script_forgets_nothing() {
    let home = Home::new();
    two_keys(&home.path("s.db"));
    let told = told_of(&mut home.tollgate("reset --store s.db"), b"y\n");
    assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""));
    assert_eq!(told.stderr, "tollgate: KEY: missing; name a key, or reset all keys with --all\n");
    assert_eq!(used(&home, "s.db", "claude-x"), 2);
    assert_eq!(home.run("reset gpt-4o --all --store s.db").code, Some(2));
}

#[test]
fn a_key_that_is_not_there_is_told_with_those_that_are_near() {
    let home = Home::new();
    two_keys(&home.path("s.db"));
    let told = home.run("reset gpt4o --store s.db");
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert_eq!(told.stderr, "tollgate: gpt4o: no such key in s.db; did you mean gpt-4o?\n");
    let told = home.run("reset gpt-4o --store gone.db");
    assert_eq!(told.code, Some(1));
    assert!(!home.path("gone.db").exists(), "nothing is made");
}

#[test]
fn a_key_without_a_name_is_near_to_none() {
    let home = Home::new();
    closed(&home.path("s.db"), |limiter| {
        limiter.quotas().set("", &Quota::new().rpd(5));
        take(limiter, "", 0);
    });
    let told = home.run("reset gpt-4o --store s.db");
    assert_eq!(told.stderr, "tollgate: gpt-4o: no such key in s.db\n");
}

#[test]
fn a_program_that_runs_forgets_too() {
    let home = Home::new();
    let limiter = open(&home.path("s.db"));
    take(&limiter, "gpt-4o", 12_345);
    // As soon as it has been written down.
    while used(&home, "s.db", "gpt-4o") == 0 {}
    assert_eq!(home.run("reset gpt-4o --store s.db").code, Some(0));
    let forgotten = || limiter.stats("gpt-4o").limits.iter().all(|limit| limit.used == 0);
    // It looks every 20 ms; each of these takes longer than a millisecond.
    assert!((0..5_000).any(|_| forgotten() || home.run("config path").code.is_none()));
}
