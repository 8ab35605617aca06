//! State of go-ratelimit, imported from its YAML file and its SQLite database.

use paceline_limiter::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_limiter::limiter::{ManualClock, NamedQuota, QuotaOrigin};
use paceline_limiter::quota::{Dimension, Quota, Window};
use paceline_store::{FileKind, MigrateOptions, MigrateSummary, State, Store, Yaml};
use rusqlite::Connection;
use tempfile::TempDir;

const S: Duration = Duration::from_secs(1);
/// 2026-01-01T00:00:00Z.
const NOW: Timestamp = ManualClock::START;
const DAY: Duration = Duration::from_secs(86_400);

pub(crate) const FILE: &str = include_str!("fixtures/ratelimits.yaml");
pub(crate) const SCHEMA: &str = include_str!("fixtures/ratelimits.sql");

/// Imports a file with this text.
fn imported(text: &str) -> Result<(State, MigrateSummary), String> {
    imported_from("ratelimits.yaml", |path| fs::write(path, text).unwrap())
}

/// Imports a database after these statements.
fn imported_from_sqlite(statements: &str) -> Result<(State, MigrateSummary), String> {
    imported_from("ratelimits.db", |path| database(path, statements))
}

pub(crate) fn database(path: &Path, statements: &str) {
    let db = Connection::open(path).unwrap();
    db.pragma_update(None, "journal_mode", "WAL").unwrap();
    db.execute_batch(SCHEMA).unwrap();
    db.execute_batch(statements).unwrap();
    db.close().unwrap();
}

fn imported_from(name: &str, make: impl FnOnce(&Path)) -> Result<(State, MigrateSummary), String> {
    let (_folder, old, new) = files(name);
    make(&old);
    let before = fs::read(&old).unwrap();
    let summary = paceline_store::migrate(&old, &new, MigrateOptions::default(), NOW, None);
    assert_eq!(fs::read(&old).unwrap(), before, "the source is unchanged");
    assert_eq!(fs::exists(&new).unwrap(), summary.is_ok());
    let summary = summary.map_err(|error| error.to_string())?;
    Ok((Yaml::peek(&new, NOW, None).unwrap(), summary))
}

fn files(name: &str) -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join(name), folder.path().join("state.yaml"));
    (folder, old, new)
}

/// Dimension, window, and the amounts with times.
type Used<'a> = (Dimension, Window, &'a [(Timestamp, u64)]);

/// Returns the usage of the only key.
fn used(state: &State) -> Vec<Used<'_>> {
    assert!(state.keys.len() <= 1);
    let buckets = state.keys.iter().flat_map(|key| &key.buckets);
    buckets.map(|b| (b.dimension.clone(), b.window, &*b.saved.taken)).collect()
}

fn check(state: &State, summary: &MigrateSummary) {
    let set = |name, quota| NamedQuota::new(name, quota, QuotaOrigin::Set);
    let quotas = [
        set("claude-opus-4", Quota::new().rpm(50).tpm(40_000)),
        set("gemini-2.0-flash-lite", Quota::new()),
        set("gemini-3-pro-preview", Quota::new().rpm(150).tpm(1_000_000).rpd(1_000)),
    ];
    assert_eq!(state.quotas, quotas);
    assert_eq!(state.keys[0].key, "gemini-3-pro-preview");
    let (first, second) = (NOW - 30 * S + Duration::from_nanos(123_456_789), NOW - 15 * S + S / 2);
    let expected = [
        (
            Dimension::Requests,
            Window::MINUTE,
            &[(NOW - 60 * S - Duration::from_nanos(1), 1), (first, 1), (second, 1)][..],
        ),
        (Dimension::Requests, Window::DAY, &[(NOW - 16 * 3_600 * S, 42)]),
        (Dimension::Tokens, Window::MINUTE, &[(first, 1_500), (second, 700)]),
    ];
    assert_eq!(used(state), expected);
    assert_eq!((summary.quotas, summary.keys, summary.entries), (3, 1, 6));
    assert_eq!((summary.skipped.past, summary.skipped.ahead, summary.skipped.negative), (0, 0, 0));
}

#[test]
fn go_yaml_is_imported_with_quotas_times_and_days() {
    let (state, summary) = imported(FILE).unwrap();
    assert_eq!((summary.from, summary.to), (FileKind::GoYaml, FileKind::Yaml));
    check(&state, &summary);
}

#[test]
fn go_database_is_imported_like_yaml() {
    let (first, second) = (NOW - 30 * S + Duration::from_nanos(123_456_789), NOW - 15 * S + S / 2);
    let (first, second) = (first.as_nanos(), second.as_nanos());
    let model = "gemini-3-pro-preview";
    let (state, summary) = imported_from_sqlite(&format!(
        "INSERT INTO quotas VALUES ('{model}', 150, 1000000, 1000), ('claude-opus-4', 50, 40000, 0),
             ('gemini-2.0-flash-lite', 0, 0, 0);
         INSERT INTO requests VALUES ('{model}', {}), ('{model}', {second}), ('{model}', {first});
         INSERT INTO tokens VALUES ('{model}', {first}, 1500), ('{model}', {second}, 700);
         INSERT INTO daily VALUES ('{model}', {}, 42), ('claude-opus-4', -6795364578871345152, 0);",
        (NOW - 60 * S - Duration::from_nanos(1)).as_nanos(),
        (NOW - 16 * 3_600 * S).as_nanos()
    ))
    .unwrap();
    assert_eq!((summary.from, summary.to), (FileKind::GoSqlite, FileKind::Yaml));
    check(&state, &summary);
}

#[test]
fn go_database_in_use_is_read_with_write_ahead_log() {
    let (_folder, old, new) = files("ratelimits.db");
    database(&old, "");
    let db = Connection::open(&old).unwrap();
    db.execute_batch(&format!("INSERT INTO requests VALUES ('m', {})", NOW.as_nanos())).unwrap();
    assert!(old.with_extension("db-wal").exists(), "the row is in the write-ahead log only");
    paceline_store::migrate(&old, &new, MigrateOptions::default(), NOW, None).unwrap();
    let state = Yaml::peek(&new, NOW, None).unwrap();
    assert_eq!(used(&state), [(Dimension::Requests, Window::MINUTE, &[(NOW, 1)][..])]);
}

#[test]
fn go_database_import_leaves_no_extra_files() {
    let (folder, old, new) = files("ratelimits.db");
    database(&old, "");
    let options = MigrateOptions { dry_run: true };
    paceline_store::migrate(&old, &new, options, NOW, None).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [old]);
}

#[test]
fn expired_entries_are_skipped_and_counted() {
    let text = "state:\n  m:\n    requests: [2025-12-31T23:58:58Z, 0001-01-01T00:00:00Z]\n    \
                tokens: [{time: 1969-12-31T23:59:59Z, count: 9}]\n    \
                day_start: 2025-12-30T23:59:00Z\n    day_count: 9\n";
    let (state, summary) = imported(text).unwrap();
    assert_eq!((used(&state), summary.skipped.past), (Vec::new(), 4));
    let text = summary.to_string();
    assert!(text.contains("skipped: 4 expired entries"), "{text}");
    let zero = i64::MIN;
    let (state, summary) = imported_from_sqlite(&format!(
        "INSERT INTO requests VALUES ('m', {zero}), ('m', {}); INSERT INTO daily VALUES ('m', {}, 9)",
        (NOW - 62 * S).as_nanos(),
        (NOW - DAY - 2 * S).as_nanos()
    ))
    .unwrap();
    assert_eq!((used(&state), summary.skipped.past), (Vec::new(), 3));
}

#[test]
fn times_in_the_future_count_as_now() {
    let text = "quotas: {}\nstate:\n  m:\n    requests: [2036-01-01T00:00:00Z, 9999-12-30T00:00:00Z]\n    \
                day_start: 2026-01-01T00:00:00.000000001Z\n    day_count: 9\n";
    let (state, summary) = imported(text).unwrap();
    let expected = [
        (Dimension::Requests, Window::MINUTE, &[(NOW, 2)][..]),
        (Dimension::Requests, Window::DAY, &[(NOW, 9)]),
    ];
    assert_eq!((used(&state), summary.skipped.ahead), (expected.to_vec(), 3));
    let insert = format!(
        "INSERT INTO tokens VALUES ('m', {}, {}), ('m', {}, 1)",
        i64::MAX,
        i64::MAX,
        NOW.as_nanos()
    );
    let (state, summary) = imported_from_sqlite(&insert).unwrap();
    let most = i64::MAX.unsigned_abs();
    let [(_, _, &[(NOW, sum)])] = used(&state)[..] else { panic!("{state:?}") };
    assert!((most..=most + 1).contains(&sum), "amounts saturate: {sum}");
    assert_eq!(summary.skipped.ahead, 1);
}

#[test]
fn negative_amounts_are_skipped_and_counted() {
    let text = "state:\n  m:\n    tokens: [{time: 2026-01-01T00:00:00Z, count: -5}, {time: 2026-01-01T00:00:00Z, count: 0}]\n    \
                day_start: 2026-01-01T00:00:00Z\n    day_count: -1\n";
    let (state, summary) = imported(text).unwrap();
    assert_eq!((used(&state), summary.skipped.negative), (Vec::new(), 2));
    assert!(summary.to_string().contains("skipped: 2 entries with a negative amount"), "{summary}");
}

#[test]
fn negative_quota_is_an_error() {
    let error = imported("quotas:\n  a:\n    max_rpm: 5\n  b:\n    max_rpm: -5\n").unwrap_err();
    assert!(error.contains("quotas.b: negative limit -5"), "{error}");
    assert!(error.contains("line 5"), "{error}");
    let error = imported_from_sqlite("INSERT INTO quotas VALUES ('b', 1, -5, 0)").unwrap_err();
    assert!(error.contains(r#"quota "b": negative limit (max_rpm 1, max_tpm -5"#), "{error}");
}

#[test]
fn values_of_wrong_type_are_errors_with_position() {
    let error = imported("state:\n  m:\n    requests:\n    - yesterday\n").unwrap_err();
    assert!(error.contains("invalid time `yesterday`") && error.contains("line 4"), "{error}");
    let error = imported("quotas:\n  m:\n    max_tpm: 1.5\n").unwrap_err();
    assert!(error.contains("quotas.m.max_tpm") && error.contains("line 3"), "{error}");
    let error = imported("state: {m: {day_count: 99999999999999999999}}\n").unwrap_err();
    assert!(error.contains("line 1, column 24"), "{error}");
    let error = imported_from_sqlite("INSERT INTO requests VALUES ('m', 'noon')").unwrap_err();
    assert!(error.contains("cannot be read"), "{error}");
}

#[test]
fn go_null_values_are_empty() {
    for text in [
        "quotas: {}\nstate: {}\n",
        "quotas: null\nstate: {}\n",
        "quotas: {}\nstate: {m: null}\n",
        "quotas: {m: null}\nstate: {m: {requests: null, tokens: null}}\n",
    ] {
        let (_folder, old, new) = files("ratelimits.yaml");
        fs::write(&old, text).unwrap();
        let summary =
            paceline_store::migrate(&old, &new, MigrateOptions::default(), NOW, None).unwrap();
        assert_eq!((summary.from, summary.keys), (FileKind::GoYaml, 0), "{text}");
    }
}

#[test]
fn go_ratelimit_file_is_not_opened_as_state_file() {
    let (_folder, old, _) = files("ratelimits.yaml");
    fs::write(&old, FILE).unwrap();
    for error in [Yaml::peek(&old, NOW, None).unwrap_err(), Yaml::new(&old).open(NOW).unwrap_err()]
    {
        assert!(error.to_string().contains("`paceline migrate`"), "{error}");
    }
    assert_eq!(fs::read_to_string(&old).unwrap(), FILE);
}
