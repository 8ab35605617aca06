//! `paceline config` and `paceline migrate`.

use serde_json::{Value, json};

use super::rig::TestHome;
use super::stores::two_keys;

#[test]
fn config_check_reports_valid_file_or_each_error() {
    let home = TestHome::new();
    home.write("good.yaml", "providers: [openai]\nquotas: {m: {rpm: 5}}\n");
    let output = home.run("config check good.yaml");
    assert_eq!(output.stdout, "good.yaml: valid (providers: 1, quotas: 1)\n", "{output:?}");
    home.write("bad.yaml", "quotas:\n  m: {rmp: 5}\n  n: {rpm: -1}\n");
    let output = home.run("config check bad.yaml");
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    let lines: Vec<_> = output.stderr.lines().collect();
    assert!(lines[0].starts_with("bad.yaml:2:7: quotas.m.rmp: "), "{output:?}");
    assert!(lines[1].starts_with("bad.yaml:3:12: quotas.n.rpm: "), "{output:?}");
    assert_eq!(lines[2], "paceline: bad.yaml: 2 errors");
    let checked = home.run("config check bad.yaml --json").json();
    assert_eq!((&checked["ok"], &checked["problems"][1]["line"]), (&json!(false), &json!(3)));
    assert_eq!(home.run("config check good.yaml --json").json()["problems"], json!([]));
    assert_eq!(home.run("config check gone.yaml").code, Some(2));
}

#[test]
fn config_show_prints_values_with_source() {
    let home = TestHome::new();
    home.write("c.yaml", "store: {sqlite: s.db, flush: 5s}\nbus: {redis: \"redis://u:s3cret@h\"}");
    let mut command = home.paceline("config show --config c.yaml");
    command.env("PACELINE_STORE__FLUSH", "2s");
    let output = super::rig::output_of(&mut command);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let flush = output.stdout.lines().find(|line| line.contains("store.flush")).expect("a line");
    assert!(flush.contains("2s") && flush.contains("PACELINE_STORE__FLUSH"), "{flush}");
    let json = home.run("config show --config c.yaml --json");
    assert!(json.json().as_array().is_some_and(|values| !values.is_empty()), "{json:?}");
    assert!(!output.stdout.contains("s3cret") && !json.stdout.contains("s3cret"));
}

#[test]
fn schema_is_json_and_providers_have_dates() {
    let home = TestHome::new();
    let schema = home.run("config schema").json();
    assert!(schema["properties"]["quotas"].is_object(), "{schema}");
    let output = home.run("config providers");
    for part in ["openai", "gpt-4o", "20", "anthropic", " days)", "https://docs.x.ai/"] {
        assert!(output.stdout.contains(part), "{part} is missing from\n{}", output.stdout);
    }
    // The rows of go-ratelimit's table are of February 2026.
    assert!(output.stderr.contains("built-in quotas are older than 90 days"), "{}", output.stderr);
    let json = home.run("config providers --json").json();
    assert!(json[0]["quotas"][0]["age_days"].is_u64(), "{json}");
}

#[test]
fn config_path_prints_effective_file() {
    let home = TestHome::new();
    let output = home.run("config path");
    let default = home.path("config/paceline/config.yaml");
    assert_eq!((output.code, output.stdout), (Some(1), format!("{}\n", default.display())));
    home.write("config/paceline/config.yaml", "{}");
    assert_eq!(home.run("config path").code, Some(0));
    let mut command = home.paceline("config path");
    let output = super::rig::output_of(command.env("PACELINE_CONFIG", "other.yaml"));
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), "other.yaml\n"));
    assert_eq!(home.run("config path --config third.yaml").stdout, "third.yaml\n");
}

#[test]
fn migrate_copies_store_and_dry_run_only_reads() {
    let home = TestHome::new();
    two_keys(&home.path("s.db"));
    let dry = home.run("migrate s.db t.yaml --dry-run --json");
    assert_eq!((dry.code, &dry.json()["keys"]), (Some(0), &json!(2)), "{dry:?}");
    assert!(!home.path("t.yaml").exists());
    let output = home.run("migrate s.db t.yaml");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.starts_with("SQLite to YAML\n"), "{output:?}");
    let used = |store: &str| -> Vec<Value> {
        let shown = home.run(&format!("show --json --store {store}")).json();
        let keys = shown["keys"].as_array().expect("keys").clone();
        keys.iter().map(|key| key["limits"][0]["used"].clone()).collect()
    };
    assert_eq!(used("t.yaml"), used("s.db"));
    assert_eq!(home.run("migrate s.db t.yaml --json").json()["new_keys"], json!(0), "idempotent");
    for arguments in ["migrate gone.db t.yaml", "migrate s.db s.db", "migrate s.db t.txt"] {
        let output = home.run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(output.stderr.starts_with("paceline: "), "{output:?}");
    }
}
