//! Errors for files of other programs don't show their content.

use super::rig::{CommandOutput, TestHome, output_of};
use super::stores::two_keys;

/// Common files of other programs; secrets and names in them contain `hunter`.
const FOREIGN: [(&str, &str); 16] = [
    (".env", "API_KEY=hunter-a\nDB_PASSWORD=hunter-b\n"),
    ("one.env", "hunter-only"),
    ("passwd", "root:x:0:0:hunter:/root:/bin/sh\nhunter:x:1:1::/:/bin/false\n"),
    ("spaced.env", "HUNTER: hunter-a\nHUNTER: hunter-b\n"),
    ("id_rsa", "-----BEGIN HUNTER KEY-----\nhunter+hunter/hunter==\n-----END HUNTER KEY-----\n"),
    ("account.json", "{\"hunter_id\": \"hunter\", \"private_key\": \"hunter\"}"),
    ("broken.json", "{\"hunter\": \"hunter-a\", hunter"),
    ("list.json", "[\"hunter-a\", {\"hunter\": 1}]"),
    ("Cargo.toml", "[hunter]\nkey = \"hunter-a\"\n"),
    ("compose.yaml", "version: 1\nservices: {hunter: {environment: {PASSWORD: hunter-a}}}\n"),
    ("version.yaml", "version: hunter\nstate: hunter\n"),
    ("state.yaml", "state: {hunter: hunter}\nhunter: hunter\n"),
    ("tagged.yaml", "!hunter {hunter: hunter}\n"),
    ("alias.yaml", "hunter: *hunter\n"),
    ("two.yaml", "hunter: 1\n---\nhunter: 2\n"),
    ("some.yaml", "store: hunter-a\nretry: hunter-b\nhunter: hunter-c\n"),
];

fn assert_hides_content(name: &str, command: &str, output: &CommandOutput) {
    assert_eq!(output.code, Some(2), "{command} {name}: {output:?}");
    let shown = format!("{}{}", output.stdout, output.stderr).to_lowercase();
    assert!(!shown.contains("hunter"), "{command} {name}: {output:?}");
    assert!(
        shown.contains(name.to_lowercase().as_str()),
        "{command} {name} isn't named: {output:?}"
    );
}

#[test]
fn foreign_configuration_error_omits_content() {
    let home = TestHome::new();
    for (name, content) in FOREIGN {
        home.write(name, content);
        for command in [
            "show --config",
            "check gpt-4o 5 --config",
            "reset --all --config",
            "config show --config",
            "config check --json",
            "config check",
            "serve --config",
            "serve --config-file",
        ] {
            let output = home.run(&format!("{command} {name}"));
            assert_hides_content(name, command, &output);
        }
    }
}

#[test]
fn foreign_state_error_omits_content() {
    let home = TestHome::new();
    two_keys(&home.path("mine.db"));
    for (name, content) in FOREIGN {
        home.write(name, content);
        for command in ["show --store", "check gpt-4o 5 --store", "reset --all --store"] {
            assert_hides_content(name, command, &home.run(&format!("{command} {name}")));
        }
        assert_hides_content(name, "migrate from", &home.run(&format!("migrate {name} new.db")));
        assert_hides_content(name, "migrate to", &home.run(&format!("migrate mine.db {name}")));
        let left = std::fs::read_to_string(home.path(name)).expect("the file exists");
        assert_eq!(left, content, "{name} is unchanged");
    }
}

#[test]
fn foreign_configuration_error_has_positions() {
    let home = TestHome::new();
    home.write("compose.yaml", "services: {a: 1}\nstore: x\nsecrets: {b: 2}\n");
    let output = home.run("config check compose.yaml");
    let lines: Vec<_> = output.stderr.lines().collect();
    assert!(lines[0].starts_with("compose.yaml:1:1: unknown section; allowed"), "{output:?}");
    assert!(lines[1].starts_with("compose.yaml:3:1: unknown section; allowed"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn variable_that_is_no_text_is_error() {
    use std::os::unix::ffi::OsStrExt;
    let text = std::ffi::OsStr::from_bytes(b"hunter\xff2");
    for variable in ["PACELINE_TOKEN", "PACELINE_ADMIN_TOKEN", "PACELINE_SERVE__WAITING"] {
        let home = TestHome::new();
        let output = output_of(home.paceline("serve --port 0").env(variable, text));
        assert_eq!(output.code, Some(2), "{output:?}");
        let error = &output.stderr;
        assert!(error.contains(variable) && !error.contains("hunter"), "{variable}: {output:?}");
    }
}

#[test]
fn misspelt_section_in_environment_is_error() {
    let home = TestHome::new();
    let mut command = home.paceline("show");
    let output =
        output_of(command.env("PACELINE_STOER__FLUSH", "hunter").env("PACELINE_TOKEN", "t"));
    assert_eq!(output.code, Some(2), "{output:?}");
    let expected = "PACELINE_STOER__FLUSH: unknown section; did you mean PACELINE_STORE__FLUSH?";
    assert!(output.stderr.contains(expected) && !output.stderr.contains("hunter"), "{output:?}");
}
