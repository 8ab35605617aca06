//! Unusable files: an error with the file name, and no file is overwritten.

use std::fs;
use std::path::Path;
use std::time::Duration;

use paceline_limiter::{Cost, Limiter, Quota};
use paceline_store::{Persistence, Sqlite, Store, StoreError};
use rusqlite::Connection;

use paceline_testing::until;

use super::sqlite::{START, change, folder, opened, sync};

/// Asserts that opening, peeking and resetting fail with this reason and leave the file unchanged.
fn assert_refused(path: &Path, reason: &str) {
    let before = fs::read(path).ok();
    let errors: [StoreError; 3] = [
        Sqlite::new(path).open(START).unwrap_err(),
        Sqlite::peek(path, START, None).unwrap_err(),
        Sqlite::reset(path, None, START, None).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("state.db"), "{error}");
        assert!(error.to_string().contains(reason), "{error}, not {reason}");
    }
    assert_eq!(fs::read(path).ok(), before);
}

/// Creates a closed database with several pages.
fn create_large(path: &Path) {
    let (mut store, _) = opened(path, START);
    let changes: Vec<_> =
        (0..2_000).map(|n| change(&format!("key-{n}"), &[(START, 1)], 0)).collect();
    sync(&mut store, &changes, START);
    store.close(START).unwrap();
}

#[test]
fn file_of_another_format_is_refused_unchanged() {
    let (_folder, path) = folder();
    fs::write(&path, "model: gpt-4o\nrequests: [1, 2, 3]\n").unwrap();
    assert_refused(&path, "not a SQLite database");
    fs::write(&path, "x").unwrap();
    assert_refused(&path, "not a SQLite database");
}

#[test]
fn directory_is_refused() {
    let (_folder, path) = folder();
    fs::create_dir(&path).unwrap();
    assert_refused(&path, "is a directory");
}

#[test]
fn go_ratelimit_database_must_be_migrated() {
    let (_folder, path) = folder();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE quotas (model TEXT PRIMARY KEY); CREATE TABLE requests (model TEXT, ts INTEGER);
         CREATE TABLE tokens (model TEXT); CREATE TABLE daily (model TEXT PRIMARY KEY)",
    )
    .unwrap();
    drop(db);
    assert_refused(&path, "paceline migrate");
}

#[test]
fn database_of_another_program_is_refused_unchanged() {
    let (_folder, path) = folder();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    assert_refused(&path, "another program");
}

#[test]
fn database_of_newer_version_is_refused_unchanged() {
    let (_folder, path) = folder();
    create_large(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
    assert_refused(&path, "newer paceline (schema version 7");
}

#[test]
fn damaged_header_is_detected() {
    let (_folder, path) = folder();
    create_large(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[16..100].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    assert_refused(&path, "move it aside");
}

#[test]
fn truncated_file_is_detected() {
    let (_folder, path) = folder();
    create_large(&path);
    let bytes = fs::read(&path).unwrap();
    for length in [50, 100, 4_096, 4_097, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert_refused(&path, "move it aside");
    }
}

#[test]
fn damaged_page_in_the_middle_is_detected() {
    let (_folder, path) = folder();
    create_large(&path);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 4_096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    assert_refused(&path, "corrupt");
}

#[test]
fn missing_directories_are_created_or_named_in_error() {
    let (folder, path) = folder();
    let deep = folder.path().join("a/b/c/state.db");
    opened(&deep, START);
    assert!(deep.exists());
    fs::write(&path, "").unwrap();
    let error = Sqlite::new(path.join("deep/state.db")).open(START).unwrap_err();
    assert!(error.to_string().contains("cannot create its directory"), "{error}");
}

#[test]
fn empty_file_becomes_a_database() {
    let (_folder, path) = folder();
    fs::write(&path, "").unwrap();
    create_large(&path);
}

#[test]
fn sync_of_unopened_store_is_error() {
    let (_folder, path) = folder();
    let error = Sqlite::new(&path).sync(&[], None, START).unwrap_err();
    assert!(error.to_string().contains("not open"), "{error}");
}

#[test]
fn lock_timeout_is_an_error_and_loses_no_change() {
    let (_folder, path) = folder();
    let (mut store, _) = opened(&path, START);
    let lock = Connection::open(&path).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.sync(&[change("a", &[(START, 3)], 0)], None, START).unwrap_err();
    assert!(error.to_string().contains("locked by another process for more than 5 s"), "{error}");
    lock.execute_batch("ROLLBACK").unwrap();
    sync(&mut store, &[change("a", &[(START, 3)], 0)], START);
    assert_eq!(super::sqlite_owners::total(&path, "a"), 3);
}

/// Asserts that the fault is reported within a second although the next flush is an hour away, and until
/// the file is put back.
fn assert_loss_is_noticed(fault: impl Fn(&Path, &Path)) {
    let (folder, path) = folder();
    let limiter = Limiter::builder().quota("k", Quota::new().rpd(10)).build().unwrap();
    let hour = Duration::from_secs(3_600);
    let persistence = Persistence::start(&limiter, Sqlite::new(&path), hour).unwrap();
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    persistence.flush_now().unwrap();
    assert!(!limiter.state().is_store_lost());
    let aside = folder.path().join("aside.db");
    fs::hard_link(&path, &aside).unwrap();
    fault(&path, &aside);
    until("the loss is noticed", || limiter.state().is_store_lost());
    let trouble = persistence.status().trouble.unwrap();
    assert!(trouble.lost && trouble.reason.contains("was deleted or replaced"), "{trouble}");
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    assert_eq!(
        persistence.flush_now().unwrap_err(),
        trouble,
        "nothing is written to a deleted file"
    );
    assert_eq!(persistence.status().pending_keys, 1);
    fs::rename(&aside, &path).unwrap();
    persistence.flush_now().unwrap();
    assert!(!limiter.state().is_store_lost());
    assert_eq!(super::sqlite_owners::total(&path, "k"), 2);
}

#[test]
fn deleted_file_is_noticed_between_flushes() {
    assert_loss_is_noticed(|path, _| fs::remove_file(path).unwrap());
}

#[test]
fn replaced_file_is_noticed_between_flushes() {
    assert_loss_is_noticed(|path, aside| {
        let other = path.with_file_name("other.db");
        fs::copy(aside, &other).unwrap();
        fs::rename(&other, path).unwrap();
    });
}
