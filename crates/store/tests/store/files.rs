//! State files of any kind.

use std::fs;
use std::path::Path;

use paceline_store::{Sqlite, Store, Yaml};

use super::sqlite::{START, change, taken};

fn write_two_keys(mut store: impl Store) {
    store.open(START).unwrap();
    store
        .sync(&[change("a", &[(START, 3)], 0), change("b", &[(START, 4)], 0)], None, START)
        .unwrap();
    store.close(START).unwrap();
}

fn assert_peek_and_reset(path: &Path) {
    assert_eq!(taken(&paceline_store::peek(path, START, None).unwrap(), "a"), [(START, 3)]);
    paceline_store::reset(path, Some("a"), START, None).unwrap();
    let state = paceline_store::peek(path, START, None).unwrap();
    assert_eq!((taken(&state, "a").len(), taken(&state, "b").len()), (0, 1));
    paceline_store::reset(path, None, START, None).unwrap();
    assert_eq!(taken(&paceline_store::peek(path, START, None).unwrap(), "b"), []);
}

#[test]
fn file_kind_is_detected_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one.state"), folder.path().join("other.db"));
    write_two_keys(Sqlite::new(&one));
    assert_peek_and_reset(&one);
    write_two_keys(Yaml::new(&other));
    assert_peek_and_reset(&other);
}

#[test]
fn go_ratelimit_file_must_be_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ratelimits.yaml");
    let text = "quotas:\n  gpt-4o:\n    max_rpm: 500\n    max_tpm: 30000\n    max_rpd: 0\n";
    fs::write(&path, text).unwrap();
    let error = paceline_store::peek(&path, START, None).unwrap_err().to_string();
    assert!(error.contains("paceline migrate"), "{error}");
    paceline_store::reset(&path, None, START, None).unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn missing_file_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["state.db", "state.yaml", "state"] {
        let path = folder.path().join(name);
        let error = paceline_store::peek(&path, START, None).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        paceline_store::reset(&path, None, START, None).unwrap_err();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Asserts that only the owner may read and write each file in a folder, and returns their names.
#[cfg(unix)]
fn private_files(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = files
        .map(|file| {
            let mode = file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file:?}");
            file.file_name().into_string().unwrap()
        })
        .collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn state_files_are_private_to_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::new(folder.path().join("state.db"));
    store.open(START).unwrap();
    store.sync(&[change("a", &[(START, 3)], 0)], None, START).unwrap();
    assert_eq!(private_files(folder.path()), ["state.db", "state.db-shm", "state.db-wal"]);

    let folder = tempfile::tempdir().unwrap();
    write_two_keys(Yaml::new(folder.path().join("state.yaml")));
    assert_eq!(private_files(folder.path()), ["state.yaml", "state.yaml.lock"]);

    let migrated = folder.path().join("state.db");
    paceline_store::migrate(
        &folder.path().join("state.yaml"),
        &migrated,
        paceline_store::MigrateOptions::default(),
        START,
        None,
    )
    .unwrap();
    assert!(private_files(folder.path()).contains(&"state.db".to_owned()));
}
