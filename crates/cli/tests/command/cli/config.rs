//! `tollgate config` and `tollgate migrate`.

use serde_json::{Value, json};

use super::rig::Home;
use super::stores::two_keys;

#[test]
fn a_right_file_is_said_to_be_and_a_wrong_one_is_told_line_by_line() {
    let home = Home::new();
    home.write("good.yaml", "providers: [openai]\nquotas: {m: {rpm: 5}}\n");
    let told = home.run("config check good.yaml");
    assert_eq!(told.stdout, "good.yaml: valid (providers: 1, quotas: 1)\n", "{told:?}");
    home.write("bad.yaml", "quotas:\n  m: {rmp: 5}\n  n: {rpm: -1}\n");
    let told = home.run("config check bad.yaml");
    assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""));
    let lines: Vec<_> = told.stderr.lines().collect();
    assert!(lines[0].starts_with("bad.yaml:2:7: quotas.m.rmp: "), "{told:?}");
    assert!(lines[1].starts_with("bad.yaml:3:12: quotas.n.rpm: "), "{told:?}");
    assert_eq!(lines[2], "tollgate: bad.yaml: 2 errors");
    let checked = home.run("config check bad.yaml --json").json();
    assert_eq!((&checked["ok"], &checked["problems"][1]["line"]), (&json!(false), &json!(3)));
    assert_eq!(home.run("config check good.yaml --json").json()["problems"], json!([]));
    assert_eq!(home.run("config check gone.yaml").code, Some(2));
}

#[test]
fn values_are_shown_with_where_they_were_said() {
    let home = Home::new();
    home.write("c.yaml", "store: {sqlite: s.db, flush: 5s}\nbus: {redis: \"redis://u:s3cret@h\"}");
    let mut command = home.tollgate("config show --config c.yaml");
    command.env("TOLLGATE_STORE__FLUSH", "2s");
    let told = super::rig::told(&mut command);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let flush = told.stdout.lines().find(|line| line.contains("store.flush")).expect("a line");
    assert!(flush.contains("2s") && flush.contains("TOLLGATE_STORE__FLUSH"), "{flush}");
    let json = home.run("config show --config c.yaml --json");
    assert!(json.json().as_array().is_some_and(|values| !values.is_empty()), "{json:?}");
    assert!(!told.stdout.contains("s3cret") && !json.stdout.contains("s3cret"));
}

#[test]
fn the_schema_is_json_and_the_providers_are_dated() {
    let home = Home::new();
    let schema = home.run("config schema").json();
    assert!(schema["properties"]["quotas"].is_object(), "{schema}");
    let told = home.run("config providers");
    for part in ["openai", "gpt-4o", "20", "anthropic"] {
        assert!(told.stdout.contains(part), "{part} is missing from\n{}", told.stdout);
    }
    assert!(home.run("config providers --json").json().to_string().contains("gpt-4o"));
}

#[test]
fn the_path_is_that_of_the_file_that_counts() {
    let home = Home::new();
    let told = home.run("config path");
    let default = home.path("config/tollgate/config.yaml");
    assert_eq!((told.code, told.stdout), (Some(1), format!("{}\n", default.display())));
    home.write("config/tollgate/config.yaml", "{}");
    assert_eq!(home.run("config path").code, Some(0));
    let mut command = home.tollgate("config path");
    let told = super::rig::told(command.env("TOLLGATE_CONFIG", "other.yaml"));
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), "other.yaml\n"));
    assert_eq!(home.run("config path --config third.yaml").stdout, "third.yaml\n");
}

#[test]
fn a_store_is_migrated_and_a_dry_run_writes_nothing() {
    let home = Home::new();
    two_keys(&home.path("s.db"));
    let dry = home.run("migrate s.db t.yaml --dry-run --json");
    assert_eq!((dry.code, &dry.json()["keys"]), (Some(0), &json!(2)), "{dry:?}");
    assert!(!home.path("t.yaml").exists());
    let told = home.run("migrate s.db t.yaml");
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.starts_with("SQLite to YAML\n"), "{told:?}");
    let used = |store: &str| -> Vec<Value> {
        let shown = home.run(&format!("show --json --store {store}")).json();
        let keys = shown["keys"].as_array().expect("keys").clone();
        keys.iter().map(|key| key["limits"][0]["used"].clone()).collect()
    };
    assert_eq!(used("t.yaml"), used("s.db"));
    assert_eq!(home.run("migrate s.db t.yaml --json").json()["new_keys"], json!(0), "idempotent");
    for arguments in ["migrate gone.db t.yaml", "migrate s.db s.db", "migrate s.db t.txt"] {
        let told = home.run(arguments);
        assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(told.stderr.starts_with("tollgate: "), "{told:?}");
    }
}
