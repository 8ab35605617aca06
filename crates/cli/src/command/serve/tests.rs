use clap::Parser;

use super::*;
use crate::command::{Cli, Command};
use paceline_serve::{LogFormat, LogLevel};

fn arguments(given: &[&str]) -> ServeArgs {
    match Cli::try_parse_from([&["paceline", "serve"], given].concat()) {
        Ok(Cli { command: Command::Serve(args) }) => *args,
        other => panic!("{other:?}"),
    }
}

fn loaded(given: &[&str], variables: &[(&str, &str)]) -> Result<Serve, String> {
    let found = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let options = LoadOptions::new().with_sections(paceline_serve::sections());
    let loaded = arguments(given).load_from(options, &found)?;
    Ok(Serve::of(&loaded.config).unwrap().clone())
}

#[test]
fn gocc_flags_set_configuration_values() {
    let given = [
        "-m",
        "7",
        "--max-requests-in-queue",
        "9",
        "-w",
        "20",
        "-r",
        "--requests-can-mod-queue=1",
        "-p",
        "0",
        "-l",
        "system-default",
        "--log-level",
        "WARN",
        "--log2xx",
        "--log5xx=false",
    ];
    let serve = loaded(&given, &[]).unwrap();
    assert_eq!((serve.max_requests, serve.max_requests_in_queue), (7, 9));
    assert_eq!(serve.window.as_millis(), 20);
    assert!(serve.requests_can_set_rate && serve.requests_can_mod_queue);
    assert_eq!(serve.listen.to_string(), "127.0.0.1:0");
    assert_eq!((serve.log.format, serve.log.level), (LogFormat::Text, LogLevel::Warn));
    assert_eq!((serve.log.log2xx, serve.log.log4xx, serve.log.log5xx), (true, false, false));
}

#[test]
fn environment_variable_applies_without_flag() {
    let variables = [
        ("PACELINE_MAX_REQUESTS", "3"),
        ("PACELINE_WINDOW_MILLIS", ""),
        ("PACELINE_REQUESTS_CAN_SET_RATE", "TRUE"),
        // Set by Kubernetes for a service named `paceline`.
        ("PACELINE_PORT", "tcp://10.0.0.1:8080"),
    ];
    let serve = loaded(&["--requests-can-set-rate=f"], &variables).unwrap();
    assert_eq!((serve.max_requests, serve.window.as_millis()), (3, 1000));
    assert!(!serve.requests_can_set_rate);
    assert_eq!(serve.listen.port(), 8080);
}

#[test]
fn ipv6_address_is_accepted_unquoted() {
    for (given, variables) in [
        (&["--listen", "[::1]:9090"][..], &[][..]),
        (&["--listen=[::1]:8080", "--port=9090"], &[]),
        (&[], &[("PACELINE_LISTEN", "[::1]:9090")]),
    ] {
        let serve = loaded(given, variables).unwrap();
        assert_eq!(serve.listen.to_string(), "[::1]:9090", "{given:?}");
    }
    let error = loaded(&["--listen", "it's"], &[]).unwrap_err();
    assert!(error.starts_with("--listen: serve.listen: must be an IP address"), "{error}");
}

#[test]
fn invalid_value_error_names_flag_or_variable() {
    for (given, variables, expected) in [
        (&["--window-millis", "-5"][..], &[][..], "--window-millis: serve.window_millis: "),
        (&["--max-requests=0"], &[], "--max-requests: serve.max_requests: "),
        (&["--port=70000"], &[], "--port: serve.listen: "),
        (&["--log-level=loud"], &[], "--log-level: serve.log.level: "),
        (&[], &[("PACELINE_MAX_REQUESTS", "many")], "PACELINE_MAX_REQUESTS: serve.max_requests: "),
        (&["-i", "http://a:8080"], &[], "--instance-urls: instances don't forward requests"),
    ] {
        let error = loaded(given, variables).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn gocc_keys_file_sets_limits_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let text = "{\n\t\"keys\": [{\"key_pattern\": \"^a\", \"key_pattern_is_regex\": true, \
        \"max_requests_per_window\": 5, \"max_requests_in_queue\": 0, \"window_millis\": 0}]\n}";
    std::fs::write(&path, text).unwrap();
    let given = ["-c", path.to_str().unwrap()];
    let keys = loaded(&given, &[]).unwrap().keys;
    let [key] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!(key.max_requests_per_window, Some(5));
    assert_eq!((key.max_requests_in_queue, key.window), (None, None));

    for (text, expected) in [
        (
            "{\"keys\": [{\"key_pattern\": \"(\", \"key_pattern_is_regex\": true}]}",
            "keys[0].key_pattern",
        ),
        ("{\"quotas\": {}}", "unknown section; allowed: keys"),
        ("[]", "must be a map of keys"),
        ("", "is empty"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = loaded(&given, &[]).unwrap_err();
        assert!(error.starts_with(path.to_str().unwrap()) && error.contains(expected), "{error}");
    }
}
