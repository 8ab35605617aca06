//! Learned limits in stores.

use std::path::Path;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{KeyChanges, LearnedLimit};
use paceline_limiter::quota::Dimension;
use paceline_store::{Sqlite, State, Store, Yaml};
use rusqlite::Connection;

use super::sqlite::{DAY, START};

const HOUR: Duration = Duration::from_secs(3_600);

fn learned(measured_at: Timestamp) -> LearnedLimit {
    let mut limit = LearnedLimit::new(Dimension::custom("images"), 19.5, measured_at, 3);
    limit.configured = Some(40.0);
    limit
}

fn change(learned: Vec<LearnedLimit>) -> KeyChanges {
    let mut change = KeyChanges::new("k");
    change.learned = Some(learned);
    change
}

fn write(mut store: impl Store, change: KeyChanges, now: Timestamp) {
    store.open(now).unwrap();
    store.sync(&[change], None, now).unwrap();
    store.close(now).unwrap();
}

fn stored(state: &State) -> Vec<LearnedLimit> {
    state.keys.iter().flat_map(|key| key.learned.clone()).collect()
}

fn assert_kept_for_a_day<S: Store>(path: &Path, new: impl Fn(&Path) -> S) {
    let read = |now: Timestamp| stored(&new(path).open(now).unwrap());
    let limit = learned(START);
    write(new(path), change(vec![limit.clone()]), START + HOUR);
    assert_eq!(read(START + DAY), [limit]);
    assert_eq!(read(START + DAY + HOUR), []);
    let newer = learned(START + DAY);
    write(new(path), change(vec![newer.clone()]), START + DAY + HOUR);
    assert_eq!(read(START + DAY + HOUR), [newer]);
    write(new(path), change(Vec::new()), START + DAY + HOUR);
    assert_eq!(read(START + DAY + HOUR), []);
}

#[test]
fn learned_limits_are_kept_for_a_day() {
    let folder = tempfile::tempdir().unwrap();
    assert_kept_for_a_day(&folder.path().join("state.db"), |path| Sqlite::new(path));
    assert_kept_for_a_day(&folder.path().join("state.yaml"), |path| Yaml::new(path));
}

#[test]
fn reset_deletes_learned_limits() {
    let folder = tempfile::tempdir().unwrap();
    let (database, yaml) = (folder.path().join("state.db"), folder.path().join("state.yaml"));
    for key in [None, Some("k")] {
        write(Sqlite::new(&database), change(vec![learned(START)]), START);
        write(Yaml::new(&yaml), change(vec![learned(START)]), START);
        Sqlite::reset(&database, key, START, None).unwrap();
        Yaml::reset(&yaml, key, START, None).unwrap();
        assert_eq!(stored(&Sqlite::peek(&database, START, None).unwrap()), []);
        assert_eq!(stored(&Yaml::peek(&yaml, START, None).unwrap()), []);
    }
}

#[test]
fn database_of_first_version_is_read_and_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut used = super::sqlite::change("k", &[(START, 7)], 0);
    used.learned = Some(vec![learned(START)]);
    write(Sqlite::new(&path), used, START);
    let first = "DROP TABLE learned; DROP TABLE utilization; ALTER TABLE cooling DROP COLUMN kind; \
                 PRAGMA user_version = 1";
    Connection::open(&path).unwrap().execute_batch(first).unwrap();
    let state = Sqlite::peek(&path, START, None).unwrap();
    assert_eq!((super::sqlite::taken(&state, "k"), stored(&state)), (vec![(START, 7)], vec![]));
    write(Sqlite::new(&path), change(vec![learned(START)]), START);
    let state = Sqlite::peek(&path, START, None).unwrap();
    assert_eq!(super::sqlite::taken(&state, "k"), [(START, 7)]);
    assert_eq!(stored(&state), [learned(START)]);
}
