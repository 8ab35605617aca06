//! Held amounts of owners that have exited or were suspended.

use paceline_limiter::limiter::{Boot, BucketChanges, KeyChanges};
use paceline_limiter::quota::{Dimension, Window};
use paceline_store::{Sqlite, Store};
use rusqlite::Connection;
use std::time::Duration;

use super::sqlite::{SECOND, START, change, folder, opened, sync, taken};

/// Returns the sum of all entries of a key's requests per day.
pub(crate) fn total(path: &std::path::Path, key: &str) -> i64 {
    let db = Connection::open(path).unwrap();
    let sql = "SELECT coalesce(sum(total), 0) FROM buckets \
               WHERE key = ?1 AND dimension = 'requests'";
    db.query_row(sql, [key], |row| row.get(0)).unwrap()
}

#[test]
fn held_amount_of_dead_owner_counts_at_last_heartbeat() {
    let (_folder, path) = folder();
    let (mut dead, _) = opened(&path, START);
    sync(&mut dead, &[change("a", &[(START, 1)], 3)], START + SECOND);
    let (mut alive, _) = opened(&path, START + SECOND);
    assert_eq!(sync(&mut alive, &[], START + 5 * SECOND), [change("a", &[], 3)]);
    // Ten seconds of silence are enough if the owner writes every second.
    let received = sync(&mut alive, &[], START + 12 * SECOND);
    assert_eq!(received, [change("a", &[(START + SECOND, 3)], 0)]);
    let (_third, state) = opened(&path, START + 13 * SECOND);
    assert_eq!(taken(&state, "a"), [(START, 1), (START + SECOND, 3)]);
    assert_eq!(total(&path, "a"), 4);
}

#[test]
fn requests_in_flight_end_with_dead_owner() {
    let (_folder, path) = folder();
    let (mut dead, _) = opened(&path, START);
    let mut change = KeyChanges::new("a");
    let flight = BucketChanges::new(Dimension::Concurrency, Window::MINUTE, Vec::new(), 2);
    change.buckets.push(flight);
    sync(&mut dead, &[change], START);
    let (_alive, state) = opened(&path, START + 12 * SECOND);
    assert_eq!(state.keys, []);
}

#[test]
fn owner_from_another_boot_is_dead_immediately() {
    let (_folder, path) = folder();
    let mut dead = Sqlite::new(&path);
    dead.set_boot(Some(Boot::new(1, 50 * SECOND)));
    dead.open(START).unwrap();
    sync(&mut dead, &[change("a", &[], 3)], START);
    let mut alive = Sqlite::new(&path);
    alive.set_boot(Some(Boot::new(2, SECOND)));
    let state = alive.open(START + SECOND).unwrap();
    assert_eq!(taken(&state, "a"), [(START, 3)]);
}

#[test]
fn suspended_owner_reclaims_held_amount() {
    let (_folder, path) = folder();
    let (mut sleeper, _) = opened(&path, START);
    sync(&mut sleeper, &[change("a", &[(START, 1)], 3)], START);
    let (mut other, _) = opened(&path, START);
    sync(&mut other, &[], START);
    let later = START + 60 * SECOND;
    let received = sync(&mut other, &[change("a", &[(later, 10)], 0)], later);
    assert_eq!(received, [change("a", &[(START, 3)], 0)], "reaped");
    // The owner resumes after one of its requests has ended.
    let ended = change("a", &[(START + Duration::from_nanos(2), 1)], 2);
    assert_eq!(sync(&mut sleeper, &[ended], later), [change("a", &[(later, 10)], 0)]);
    let received = sync(&mut other, &[], later);
    assert_eq!(received, [change("a", &[(START, -3), (START + Duration::from_nanos(2), 1)], 2)]);
    assert_eq!(sync(&mut sleeper, &[], later), []);
    assert_eq!(total(&path, "a"), 12);
    sync(&mut sleeper, &[change("a", &[(START + Duration::from_nanos(3), 2)], 0)], later);
    let (_third, state) = opened(&path, later);
    assert_eq!(
        taken(&state, "a"),
        [
            (START, 1),
            (START + Duration::from_nanos(2), 1),
            (START + Duration::from_nanos(3), 2),
            (later, 10)
        ]
    );
    assert_eq!(total(&path, "a"), 14);
}

#[test]
fn suspended_owner_deleted_by_others_resumes() {
    let (_folder, path) = folder();
    let (mut sleeper, _) = opened(&path, START);
    sync(&mut sleeper, &[change("a", &[], 3)], START);
    let db = Connection::open(&path).unwrap();
    db.execute_batch("DELETE FROM owners; DELETE FROM held").unwrap();
    assert_eq!(sync(&mut sleeper, &[change("a", &[(START, 1)], 2)], START + SECOND), []);
    let state = Sqlite::peek(&path, START + SECOND, None).unwrap();
    assert_eq!(state.keys[0].buckets[0].saved.held, 2);
}
