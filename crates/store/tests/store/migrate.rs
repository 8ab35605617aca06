//! Migration of state from one store to another.

use paceline_limiter::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_limiter::engine::Saved;
use paceline_limiter::limiter::{
    BucketSnapshot, KeySnapshot, ManualClock, NamedQuota, QuotaOrigin,
};
use paceline_limiter::quota::{Dimension, Quota, Window};
use paceline_store::{FileKind, MigrateOptions, MigrateSummary, Sqlite, State, Store, Yaml};
use proptest::prelude::*;
use tempfile::TempDir;

use super::go_ratelimit::{FILE, database};
use super::states;

const S: Duration = Duration::from_secs(1);
const NOW: Timestamp = ManualClock::START;

fn folder() -> (TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    (folder, move |name| root.join(name))
}

fn migrate(from: &Path, to: &Path) -> Result<MigrateSummary, String> {
    paceline_store::migrate(from, to, MigrateOptions::default(), NOW, None)
        .map_err(|error| error.to_string())
}

fn peek(path: &Path) -> State {
    let sqlite = path.extension().unwrap() == "db";
    if sqlite { Sqlite::peek(path, NOW, None) } else { Yaml::peek(path, NOW, None) }.unwrap()
}

/// Returns the snapshot of a key with a limit of tokens per minute.
fn tokens(key: &str, taken: &[(Timestamp, u64)], held: u64) -> KeySnapshot {
    let saved = Saved { taken: taken.to_vec(), held };
    KeySnapshot::new(key, vec![BucketSnapshot::new(Dimension::Tokens, Window::MINUTE, saved)])
}

fn state(quotas: &[(&str, u64)], keys: Vec<KeySnapshot>) -> State {
    let mut state = State::default();
    let set = |(name, rpm): &(&str, u64)| {
        NamedQuota::new(*name, Quota::new().rpm(*rpm), QuotaOrigin::Set)
    };
    state.quotas = quotas.iter().map(set).collect();
    state.keys = keys;
    state
}

#[test]
fn held_amount_of_source_is_imported_once() {
    let (_folder, at) = folder();
    Yaml::replace(&at("a.yaml"), &state(&[], vec![tokens("a", &[], 70)]), NOW, None).unwrap();
    let file = fs::File::options().write(true).open(at("a.yaml")).unwrap();
    let at_that_time = std::time::SystemTime::from(NOW);
    file.set_modified(at_that_time).unwrap();
    for (second, new) in [(1, 1), (9, 0)] {
        let (from, to) = (at("a.yaml"), at("b.db"));
        let summary = paceline_store::migrate(
            &from,
            &to,
            MigrateOptions::default(),
            NOW + Duration::from_secs(second),
            None,
        );
        assert_eq!(summary.unwrap().new_keys, new);
    }
    let taken = peek(&at("b.db")).keys[0].buckets[0].saved.taken.clone();
    assert_eq!(taken, [(NOW, 70)]);
}

#[test]
fn each_of_four_kinds_migrates_to_each_own_kind() {
    let (_folder, at) = folder();
    fs::write(at("go.txt"), FILE).unwrap();
    database(&at("go.bin"), "INSERT INTO quotas VALUES ('m', 5, 0, 0)");
    let ours = state(&[("a", 5)], vec![tokens("a", &[(NOW, 7)], 0)]);
    Yaml::replace(&at("ours.bin"), &ours, NOW, None).unwrap();
    Sqlite::replace(&at("ours.txt"), &ours, NOW, None).unwrap();
    let sources = [
        ("go.txt", FileKind::GoYaml),
        ("go.bin", FileKind::GoSqlite),
        ("ours.bin", FileKind::Yaml),
        ("ours.txt", FileKind::Sqlite),
    ];
    for (source, from) in sources {
        for (name, to) in [("yaml", FileKind::Yaml), ("db", FileKind::Sqlite)] {
            let destination = at(&format!("{source}.{name}"));
            let summary = migrate(&at(source), &destination).unwrap();
            assert_eq!((summary.from, summary.to), (from, to), "detected by content");
            let state = peek(&destination);
            assert_eq!(state.quotas.len(), summary.quotas, "{source} to {name}");
            assert!(!state.quotas.is_empty(), "{source} to {name}");
        }
    }
    assert_eq!(peek(&at("ours.bin.db")), ours);
    assert_eq!(peek(&at("ours.txt.yaml")), ours);
    assert_eq!(peek(&at("go.txt.yaml")), peek(&at("go.txt.db")));
}

#[test]
fn repeated_migration_changes_no_state() {
    let (_folder, at) = folder();
    fs::write(at("go.yaml"), FILE).unwrap();
    for name in ["new.yaml", "new.db"] {
        let first = migrate(&at("go.yaml"), &at(name)).unwrap();
        assert_eq!(first.new_keys, 1);
        let (state, bytes) = (peek(&at(name)), fs::read(at(name)).unwrap());
        let second = migrate(&at("go.yaml"), &at(name)).unwrap();
        assert_eq!(peek(&at(name)), state, "{name}");
        assert_eq!((second.new_keys, second.keys), (0, first.keys));
        assert!(second.replaced_quotas.is_empty());
        assert!(name.ends_with("db") || fs::read(at(name)).unwrap() == bytes);
    }
}

#[test]
fn repeated_migration_with_merged_times_changes_no_state() {
    let (_folder, at) = folder();
    // Many entries within 1/256 of a minute, which stores merge.
    let many: Vec<_> =
        (0..40).map(|i| (NOW - 30 * S + Duration::from_nanos(i * 10_000_000), 1)).collect();
    Sqlite::replace(&at("a.db"), &state(&[], vec![tokens("a", &many, 0)]), NOW, None).unwrap();
    let sum =
        || peek(&at("b.yaml")).keys[0].buckets[0].saved.taken.iter().map(|e| e.1).sum::<u64>();
    for _ in 0..3 {
        migrate(&at("a.db"), &at("b.yaml")).unwrap();
        assert_eq!(sum(), 40);
        migrate(&at("b.yaml"), &at("a.db")).unwrap();
    }
}

#[test]
fn migration_keeps_state_of_the_destination() {
    let (_folder, at) = folder();
    let kept = state(
        &[("a", 1), ("own", 2)],
        vec![tokens("a", &[(NOW - 9 * S, 5), (NOW - 2 * S, 6)], 0), tokens("own", &[(NOW, 7)], 0)],
    );
    let source = state(
        &[("a", 9), ("b", 3)],
        vec![tokens("a", &[(NOW - 9 * S, 8), (NOW - 4 * S, 1)], 0), tokens("b", &[(NOW, 4)], 0)],
    );
    Yaml::replace(&at("source.yaml"), &source, NOW, None).unwrap();
    let both = state(
        &[("a", 9), ("b", 3), ("own", 2)],
        vec![
            tokens("a", &[(NOW - 9 * S, 8), (NOW - 4 * S, 1), (NOW - 2 * S, 6)], 0),
            tokens("b", &[(NOW, 4)], 0),
            tokens("own", &[(NOW, 7)], 0),
        ],
    );
    Yaml::replace(&at("kept.yaml"), &kept, NOW, None).unwrap();
    Sqlite::replace(&at("kept.db"), &kept, NOW, None).unwrap();
    for name in ["kept.yaml", "kept.db"] {
        let summary = migrate(&at("source.yaml"), &at(name)).unwrap();
        assert_eq!(peek(&at(name)), both, "{name}");
        assert_eq!((&*summary.replaced_quotas, summary.new_keys), (&["a".to_owned()][..], 2));
        assert!(summary.to_string().contains("replaced quotas: a"), "{summary}");
    }
}

#[test]
fn held_amount_counts_once_at_last_use_of_source() {
    let (_folder, at) = folder();
    let mut held = tokens("a", &[(NOW - 9 * S, 5)], 70);
    let saved = Saved { taken: Vec::new(), held: 3 };
    held.buckets.insert(0, BucketSnapshot::new(Dimension::Concurrency, Window::MINUTE, saved));
    Yaml::replace(&at("a.yaml"), &state(&[], vec![held]), NOW, None).unwrap();
    for name in ["b.yaml", "b.db"] {
        for later in [Duration::ZERO, S] {
            let at_that_time = NOW + later;
            let options = MigrateOptions::default();
            paceline_store::migrate(&at("a.yaml"), &at(name), options, at_that_time, None).unwrap();
        }
        assert_eq!(peek(&at(name)).keys, [tokens("a", &[(NOW - 9 * S, 75)], 0)], "{name}");
    }
}

#[test]
fn cool_down_is_migrated_and_never_shortened() {
    let (_folder, at) = folder();
    let cooling = |until| {
        let mut key = tokens("a", &[(NOW, 5)], 0);
        key.cooling_until = Some(until);
        state(&[], vec![key])
    };
    Yaml::replace(&at("a.yaml"), &cooling(NOW + 30 * S), NOW, None).unwrap();
    for (name, kept) in [("b.yaml", 20), ("b.db", 20), ("c.yaml", 40), ("c.db", 40)] {
        let state = cooling(NOW + Duration::from_secs(kept));
        match name.ends_with("db") {
            true => Sqlite::replace(&at(name), &state, NOW, None).unwrap(),
            false => Yaml::replace(&at(name), &state, NOW, None).unwrap(),
        }
        migrate(&at("a.yaml"), &at(name)).unwrap();
        assert_eq!(
            peek(&at(name)).keys[0].cooling_until,
            Some(NOW + Duration::from_secs(kept.max(30))),
            "{name}"
        );
    }
}

#[test]
fn dry_run_reports_changes_and_writes_no_file() {
    let (folder, at) = folder();
    fs::write(at("go.yaml"), FILE).unwrap();
    let options = MigrateOptions { dry_run: true };
    for name in ["new.yaml", "new.db"] {
        let dry = paceline_store::migrate(&at("go.yaml"), &at(name), options, NOW, None).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file was created");
        assert!(dry.to_string().contains("(dry run: nothing was written)"), "{dry}");
        assert_eq!((dry.quotas, dry.keys, dry.entries, dry.new_keys), (3, 1, 6, 1));
    }
    let kept = state(&[("claude-opus-4", 1)], Vec::new());
    Yaml::replace(&at("kept.yaml"), &kept, NOW, None).unwrap();
    let dry =
        paceline_store::migrate(&at("go.yaml"), &at("kept.yaml"), options, NOW, None).unwrap();
    assert_eq!(dry.replaced_quotas, ["claude-opus-4"]);
    assert_eq!(peek(&at("kept.yaml")), kept);
    let wet = migrate(&at("go.yaml"), &at("kept.yaml")).unwrap();
    assert!(!wet.dry_run && wet.replaced_quotas == dry.replaced_quotas);
}

#[test]
fn summary_serializes_to_json() {
    let (_folder, at) = folder();
    fs::write(at("go.yaml"), FILE).unwrap();
    let summary = migrate(&at("go.yaml"), &at("new.db")).unwrap();
    let json: serde_json::Value = serde_json::to_value(&summary).unwrap();
    assert_eq!((&json["from"], &json["to"]), (&"go_yaml".into(), &"sqlite".into()));
    assert_eq!((&json["quotas"], &json["skipped"]["past"]), (&3.into(), &0.into()));
    let text = "go-ratelimit YAML to SQLite\n3 quotas, 1 keys (1 with new usage), 6 entries";
    assert_eq!(summary.to_string(), text);
}

#[cfg(unix)]
#[test]
fn migration_of_a_file_into_the_same_file_is_refused() {
    let (_folder, at) = folder();
    Yaml::replace(&at("a.yaml"), &State::default(), NOW, None).unwrap();
    std::os::unix::fs::symlink(at("a.yaml"), at("link.yaml")).unwrap();
    fs::hard_link(at("a.yaml"), at("hard.yaml")).unwrap();
    for name in ["a.yaml", "link.yaml", "hard.yaml", "../a.yaml"] {
        let to = if name.starts_with("..") { at("x").join(name) } else { at(name) };
        fs::create_dir_all(at("x")).unwrap();
        let error = migrate(&at("a.yaml"), &to).unwrap_err();
        assert!(error.contains("source and destination are the same file"), "{error}");
    }
}

#[test]
fn unreadable_or_unwritable_files_are_refused_unchanged() {
    let (_folder, at) = folder();
    fs::write(at("go.yaml"), FILE).unwrap();
    let refused = |from: &str, to: &str, reason: &str| {
        let before = fs::read(at(to)).ok();
        let error = migrate(&at(from), &at(to)).unwrap_err();
        assert!(error.contains(reason), "{error:?} should say {reason:?}");
        assert_eq!(fs::read(at(to)).ok(), before);
    };
    refused("missing.yaml", "new.yaml", "missing.yaml: nothing to import");
    fs::write(at("empty.yaml"), "").unwrap();
    refused("empty.yaml", "new.yaml", "empty.yaml: nothing to import");
    refused("go.yaml", "new.txt", "unknown file type; use .yaml");
    refused("go.yaml", "new", "unknown file type; use .yaml");
    fs::write(at("theirs.yaml"), FILE).unwrap();
    refused("go.yaml", "theirs.yaml", "go-ratelimit YAML files are read-only");
    database(&at("theirs.db"), "");
    refused("go.yaml", "theirs.db", "go-ratelimit SQLite files are read-only");
    fs::write(at("notes.yaml"), "shopping: [milk]\n").unwrap();
    refused("go.yaml", "notes.yaml", "not a paceline state file");
    refused("notes.yaml", "new.yaml", "not a paceline state file");
    fs::write(at("broken.db"), b"SQLite format 3\0 and then nothing").unwrap();
    refused("broken.db", "new.yaml", "broken.db");
    refused("go.yaml", "broken.db", "broken.db");
    fs::create_dir(at("folder.yaml")).unwrap();
    refused("folder.yaml", "new.yaml", "folder.yaml");
}

#[test]
fn yaml_file_in_use_is_refused() {
    let (_folder, at) = folder();
    fs::write(at("go.yaml"), FILE).unwrap();
    let mut store = Yaml::new(at("state.yaml"));
    store.open(NOW).unwrap();
    let error = migrate(&at("go.yaml"), &at("state.yaml")).unwrap_err();
    assert!(error.contains("in use by process"), "{error}");
}

#[test]
fn database_in_use_receives_migrated_state() {
    let (_folder, at) = folder();
    fs::write(at("go.yaml"), FILE).unwrap();
    let mut store = Sqlite::new(at("state.db"));
    store.open(NOW).unwrap();
    migrate(&at("go.yaml"), &at("state.db")).unwrap();
    let others = store.sync(&[], None, NOW).unwrap();
    assert_eq!(others.iter().map(|key| &*key.key).collect::<Vec<_>>(), ["gemini-3-pro-preview"]);
    store.close(NOW).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn state_migrated_to_sqlite_and_back_is_unchanged(state in states::at_rest()) {
        let (_folder, at) = folder();
        let migrate = |from: &str, to: &str| {
            paceline_store::migrate(&at(from), &at(to), MigrateOptions::default(), states::NOW, None).unwrap();
        };
        Yaml::replace(&at("a.yaml"), &state, states::NOW, None).unwrap();
        migrate("a.yaml", "b.db");
        prop_assert_eq!(Sqlite::peek(&at("b.db"), states::NOW, None).unwrap(), state.clone());
        migrate("b.db", "c.yaml");
        prop_assert_eq!(Yaml::peek(&at("c.yaml"), states::NOW, None).unwrap(), state);
    }
}
