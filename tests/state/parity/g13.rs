//! g13: state in SQLite, shared by several processes.

use std::time::Duration;

use paceline::limiter::ManualClock;
use paceline::store::{Persistence, Sqlite};
use paceline::{Cost, Limiter, Quota};
use rusqlite::Connection;

/// Returns a limiter with a separate store connection, as in a separate process.
fn limiter_with_store(path: &std::path::Path, clock: &ManualClock) -> (Limiter, Persistence) {
    let quota = Quota::new().rpm(100).tpm(1_000).rpd(10);
    let limiter = Limiter::builder().quota("gpt-4o", quota).clock(clock.clone()).build().unwrap();
    let persistence =
        Persistence::start(&limiter, Sqlite::new(path), Duration::from_secs(3_600)).unwrap();
    (limiter, persistence)
}

fn used(limiter: &Limiter) -> Vec<u64> {
    limiter.stats("gpt-4o").limits.iter().map(|limit| limit.used).collect()
}

#[test]
fn g13_usage_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not/there/yet/state.db");
    let clock = ManualClock::new();
    let (limiter, _persistence) = limiter_with_store(&path, &clock);
    drop(limiter.try_acquire("gpt-4o", &Cost::new().tokens(300)).unwrap());
    drop(limiter);
    clock.advance(Duration::from_secs(5));
    assert_eq!(used(&limiter_with_store(&path, &clock).0), [1, 300, 1]);
}

#[test]
fn g13_processes_add_to_usage_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let clock = ManualClock::new();
    let (one, persistence_one) = limiter_with_store(&path, &clock);
    let (two, persistence_two) = limiter_with_store(&path, &clock);
    for (limiter, tokens) in [(&one, 100), (&two, 200), (&one, 300)] {
        drop(limiter.try_acquire("gpt-4o", &Cost::new().tokens(tokens)).unwrap());
    }
    for persistence in [&persistence_one, &persistence_two, &persistence_one] {
        persistence.flush_now().unwrap();
    }
    assert_eq!(used(&one), [3, 600, 3]);
    assert_eq!(used(&two), [3, 600, 3]);
    drop((one, two));
    assert_eq!(used(&limiter_with_store(&path, &clock).0), [3, 600, 3]);
}

#[test]
fn g13_database_is_in_wal_mode_and_versioned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (_limiter, _persistence) = limiter_with_store(&path, &ManualClock::new());
    let db = Connection::open(&path).unwrap();
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    let version: i32 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!((mode.as_str(), version), ("wal", 4));
}
