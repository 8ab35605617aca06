//! The command line: `show`, `reset [model]`, `count`, `config` and `check`, each with `--json`.

use serde_json::json;

use crate::cli::rig::TestHome;
use crate::cli::stores::two_keys;

/// Returns a home whose default store has usage of `gpt-4o` and `claude-x`.
fn home() -> TestHome {
    let home = TestHome::new();
    two_keys(&home.path("state/paceline/state.db"));
    home
}

#[test]
fn g18_show_lists_models_with_usage_and_limits() {
    let home = home();
    let output = home.run("show");
    assert_eq!(output.code, Some(0));
    assert!(
        output.stdout.contains("claude-x  (quota claude-*)\n")
            && output.stdout.contains("12,345 / 30,000"),
        "{output:?}"
    );
    let keys = home.run("show --json").json()["keys"].clone();
    assert_eq!((&keys[0]["key"], &keys[1]["key"]), (&json!("claude-x"), &json!("gpt-4o")));
    assert_eq!(home.run("show gpt-4o --json").json()["keys"][0], keys[1]);
}

#[test]
fn g18_reset_clears_one_model_or_all() {
    let home = home();
    let output = home.run("reset gpt-4o --json");
    assert_eq!((output.code, &output.json()["reset"]), (Some(0), &json!(["gpt-4o"])));
    let used = |at: usize| {
        home.run("show --json").json()["keys"][at]["limits"][0]["used"].as_u64().unwrap_or(0)
    };
    assert_eq!(used(0), 2);
    assert_eq!(home.run("reset --all").code, Some(0));
    assert_eq!(used(0), 0);
}

#[test]
fn g18_count_estimates_four_characters_a_token() {
    let home = TestHome::new();
    assert_eq!(home.run("count gpt-4o abcdefgh --by estimate").stdout, "2\n");
    assert_eq!(home.run("count gpt-4o abcdefgh --by estimate --json").json()["tokens"], json!(2));
}

#[test]
fn g18_config_shows_effective_values() {
    let home = TestHome::new();
    home.write("config/paceline/config.yaml", "quotas: {gpt-4o: {rpm: 500}}");
    let output = home.run("config show");
    assert_eq!(output.code, Some(0));
    assert!(output.stdout.contains("500") && output.stdout.contains("config.yaml"), "{output:?}");
    assert!(home.run("config show --json").json().to_string().contains("gpt-4o"));
}

#[test]
fn g18_check_sets_exit_code_without_consuming() {
    let home = home();
    assert_eq!(home.run("check gpt-4o 17000").code, Some(0));
    assert_eq!(home.run("check gpt-4o 17000 --json").json()["allowed"], json!(true));
    assert_eq!(home.run("check gpt-4o 18000").code, Some(1));
    assert_eq!(home.run("check gpt-4o 18000 --json").json()["code"], json!("tpm_exceeded"));
    assert_eq!(home.run("check gpt-4o -1").code, Some(2));
}
