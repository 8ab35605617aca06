use std::fs;
use std::path::Path;

use paceline::Quota;
use paceline_config::{self as config, OpenError};

use super::parse_valid;

fn write(folder: &Path, text: &str) -> std::path::PathBuf {
    let path = folder.join("paceline.yaml");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn store_failing_to_open_is_named_in_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), "not: [ours").unwrap();
    let path = write(folder.path(), "quotas: {a: {rpd: 3}}\nstore: {yaml: s.yaml}\n");
    let error = config::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Store(_)), "{error:?}");
    assert!(error.to_string().contains("s.yaml"), "{error}");
}

#[test]
fn limiter_from_invalid_file_returns_config_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "quotas: {a: {rpd: -3}}\n");
    let error = config::open(&path).unwrap_err().to_string();
    assert_eq!(error, config::check(&path).unwrap_err().to_string());
    assert!(error.contains("paceline.yaml:1:19: quotas.a.rpd: must be a whole number"), "{error}");
}

#[test]
fn layer_uses_max_wait_and_attempts_of_file() {
    let config =
        parse_valid("waiting: {max_wait: 5s}\nretry: {attempts: 3}\nquotas: {a: {rpm: 1}}");
    let layer = config.layer(&config.limiter().unwrap());
    let shown = format!("{layer:?}");
    assert!(shown.contains("max_wait: Some(5s)") && shown.contains("Retries(2)"), "{shown}");
}

#[test]
fn regex_quotas_apply_after_globs_in_file_order() {
    let text = "
quotas:
  'user-[0-9]+': {regex: true, rpm: 1}
  'user-.*': {regex: true, rpm: 2}
  'user-7*': {rpm: 3}
  user-77: {rpm: 4}
";
    let limiter = parse_valid(text).builder().build().unwrap();
    let rpm = |key| limiter.quotas().of(key).limits().first().map(|limit| limit.amount());
    let keys = ["user-1", "user-x", "user-7", "user-77", "a-user-1"];
    assert_eq!(keys.map(rpm), [Some(1), Some(2), Some(3), Some(4), None]);
    assert_eq!(limiter.quotas().of("a-user-1"), Quota::new());
}
