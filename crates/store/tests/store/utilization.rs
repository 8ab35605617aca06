//! Utilization of the account's windows in stores.

use std::fs;
use std::path::Path;
use std::time::Duration;

use paceline_limiter::limiter::UtilizationReading;
use paceline_limiter::limiter::{KeyChanges, ManualClock, Utilization};
use paceline_limiter::quota::Share;
use paceline_limiter::seam;
use paceline_limiter::{Cost, Limiter, Quota, Timestamp};
use paceline_store::{MigrateOptions, Persistence, Sqlite, State, Store, Yaml};
use rusqlite::Connection;

use super::sqlite::START;

const HOUR: Duration = Duration::from_secs(3_600);

fn window(used: f64, observed_at: Timestamp) -> Utilization {
    let mut window = Utilization::new("5h", used);
    (window.observed_at, window.resets_at) = (observed_at, Some(START + 5 * HOUR));
    window
}

fn change(windows: &[Utilization]) -> KeyChanges {
    let mut change = KeyChanges::new("k");
    change.utilization = Some(windows.to_vec());
    change
}

fn write(mut store: impl Store, change: KeyChanges, now: Timestamp) {
    store.open(now).unwrap();
    store.sync(&[change], None, now).unwrap();
    store.close(now).unwrap();
}

fn stored(state: &State) -> Vec<Utilization> {
    state.keys.iter().flat_map(|key| key.utilization.clone()).collect()
}

fn assert_kept_until_reset<S: Store>(path: &Path, new: impl Fn(&Path) -> S) {
    let read = |now: Timestamp| stored(&new(path).open(now).unwrap());
    let mut weekly = Utilization::new("7d", 0.25);
    (weekly.observed_at, weekly.resets_at) = (START, Some(START + 100 * HOUR));
    write(new(path), change(&[window(0.95, START), weekly.clone()]), START);
    assert_eq!(read(START + HOUR), [window(0.95, START), weekly.clone()]);
    write(new(path), change(&[window(0.97, START + HOUR), weekly.clone()]), START + HOUR);
    assert_eq!(read(START + HOUR), [window(0.97, START + HOUR), weekly.clone()]);
    assert_eq!(read(START + 5 * HOUR), [weekly]);
    assert_eq!(read(START + 100 * HOUR), []);
}

#[test]
fn utilization_is_kept_until_window_resets() {
    let folder = tempfile::tempdir().unwrap();
    assert_kept_until_reset(&folder.path().join("state.db"), |path| Sqlite::new(path));
    assert_kept_until_reset(&folder.path().join("state.yaml"), |path| Yaml::new(path));
}

fn assert_stated_windows_replace_others<S: Store>(path: &Path, new: impl Fn(&Path) -> S) {
    let read = |now: Timestamp| stored(&new(path).open(now).unwrap());
    let mut weekly = Utilization::new("7d", 0.25);
    (weekly.observed_at, weekly.resets_at) = (START, Some(START + 100 * HOUR));
    write(new(path), change(&[window(0.95, START), weekly.clone()]), START);
    write(new(path), KeyChanges::new("k"), START);
    assert_eq!(read(START), [window(0.95, START), weekly.clone()]);
    write(new(path), change(std::slice::from_ref(&weekly)), START);
    assert_eq!(read(START), [weekly]);
    write(new(path), change(&[]), START);
    assert_eq!(read(START), []);
}

#[test]
fn stated_windows_replace_those_that_are_no_longer_known() {
    let folder = tempfile::tempdir().unwrap();
    assert_stated_windows_replace_others(&folder.path().join("state.db"), |path| Sqlite::new(path));
    assert_stated_windows_replace_others(&folder.path().join("state.yaml"), |path| Yaml::new(path));
}

#[test]
fn newer_utilization_of_two_processes_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (mut one, mut two) = (Sqlite::new(&path), Sqlite::new(&path));
    one.open(START).unwrap();
    two.open(START).unwrap();
    let (older, newer) = (window(0.25, START), window(0.95, START + HOUR));
    one.sync(&[change(std::slice::from_ref(&newer))], None, START + HOUR).unwrap();
    two.sync(&[change(&[older])], None, START + HOUR).unwrap();
    assert_eq!(stored(&Sqlite::peek(&path, START + HOUR, None).unwrap()), [newer]);
    let newest = window(0.5, START + 2 * HOUR);
    two.sync(&[change(std::slice::from_ref(&newest))], None, START + 2 * HOUR).unwrap();
    assert_eq!(stored(&Sqlite::peek(&path, START + 2 * HOUR, None).unwrap()), [newest]);
}

#[test]
fn reset_deletes_utilization() {
    let folder = tempfile::tempdir().unwrap();
    let (database, yaml) = (folder.path().join("state.db"), folder.path().join("state.yaml"));
    for key in [None, Some("k")] {
        write(Sqlite::new(&database), change(&[window(0.95, START)]), START);
        write(Yaml::new(&yaml), change(&[window(0.95, START)]), START);
        Sqlite::reset(&database, key, START, None).unwrap();
        Yaml::reset(&yaml, key, START, None).unwrap();
        assert_eq!(stored(&Sqlite::peek(&database, START, None).unwrap()), []);
        assert_eq!(stored(&Yaml::peek(&yaml, START, None).unwrap()), []);
    }
}

#[test]
fn files_without_utilization_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (database, yaml) = (folder.path().join("state.db"), folder.path().join("state.yaml"));
    let used = || super::sqlite::change("k", &[(START, 7)], 0);
    write(Sqlite::new(&database), used(), START);
    let second = "DROP TABLE utilization; ALTER TABLE cooling DROP COLUMN kind; \
                  PRAGMA user_version = 2";
    Connection::open(&database).unwrap().execute_batch(second).unwrap();
    write(Yaml::new(&yaml), used(), START);
    assert!(!fs::read_to_string(&yaml).unwrap().contains("utilization"));
    for state in
        [Sqlite::peek(&database, START, None).unwrap(), Yaml::peek(&yaml, START, None).unwrap()]
    {
        assert_eq!((super::sqlite::taken(&state, "k"), stored(&state)), (vec![(START, 7)], vec![]));
    }
    write(Sqlite::new(&database), change(&[window(0.95, START)]), START);
    let state = Sqlite::peek(&database, START, None).unwrap();
    assert_eq!(super::sqlite::taken(&state, "k"), [(START, 7)]);
    assert_eq!(stored(&state), [window(0.95, START)]);
}

#[test]
fn migration_keeps_utilization() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name| folder.path().join(name);
    let migrate = |from: &Path, to: &Path| {
        paceline_store::migrate(from, to, MigrateOptions::default(), START, None).unwrap()
    };
    write(Yaml::new(at("a.yaml")), change(&[window(0.95, START)]), START);
    migrate(&at("a.yaml"), &at("b.db"));
    migrate(&at("b.db"), &at("c.yaml"));
    assert_eq!(stored(&Sqlite::peek(&at("b.db"), START, None).unwrap()), [window(0.95, START)]);
    assert_eq!(stored(&Yaml::peek(&at("c.yaml"), START, None).unwrap()), [window(0.95, START)]);
}

fn assert_quota_restored<S: Store>(store: impl Fn() -> S) {
    let clock = ManualClock::new();
    let quota = Quota::new().concurrency(4).with_weight(3);
    let quota = quota.with_utilization(Share::percent(90).unwrap());
    let start = || {
        let limiter = Limiter::builder().clock(clock.clone()).build().unwrap();
        (limiter.clone(), Persistence::start(&limiter, store(), HOUR).unwrap())
    };
    let (before, store) = start();
    before.quotas().set("k", &quota).unwrap();
    let mut reading = UtilizationReading::new("5h", 0.95);
    reading.reset = Some(5 * HOUR);
    before.try_acquire("k", &Cost::new()).unwrap().observe_utilization(&[reading]);
    store.flush_now().unwrap();
    drop((before, store));
    let (after, _store) = start();
    assert_eq!(after.quotas().of("k"), quota);
    assert!(after.try_acquire("k", &Cost::new()).is_err(), "90 % of the window is used");
}

#[test]
fn restored_quota_holds_its_part_of_a_window() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name| folder.path().join(name);
    assert_quota_restored(|| Sqlite::new(at("state.db")));
    assert_quota_restored(|| Yaml::new(at("state.yaml")));
}

fn limiter(quota: Quota, clock: &ManualClock) -> Limiter {
    Limiter::builder().quota("k", quota).clock(clock.clone()).build().unwrap()
}

fn assert_held_after_restart(mut store: impl Store) {
    let clock = ManualClock::new();
    // The first run isn't held, so that only the stored utilization holds the second one.
    let before = limiter(Quota::new().concurrency(4), &clock);
    seam::track(&before);
    store.open(before.now()).unwrap();
    let mut reading = UtilizationReading::new("5h", 0.95);
    reading.reset = Some(5 * HOUR);
    before.try_acquire("k", &Cost::new()).unwrap().observe_utilization(&[reading]);
    store.sync(&seam::collect_changes(&before), None, before.now()).unwrap();
    store.close(before.now()).unwrap();
    let quota = Quota::new().concurrency(4).with_utilization(Share::percent(90).unwrap());
    for (after, is_held) in [(HOUR, true), (3 * HOUR, true), (HOUR, false)] {
        clock.advance(after);
        let restarted = limiter(quota.clone(), &clock);
        restarted.state().absorb(&store.open(restarted.now()).unwrap().keys);
        store.close(restarted.now()).unwrap();
        assert_eq!(restarted.try_acquire("k", &Cost::new()).is_err(), is_held, "{after:?}");
        assert_eq!(restarted.stats("k").utilization.is_empty(), !is_held, "{after:?}");
    }
}

#[test]
fn restarted_key_is_held_until_window_resets() {
    let folder = tempfile::tempdir().unwrap();
    assert_held_after_restart(Sqlite::new(folder.path().join("state.db")));
    assert_held_after_restart(Yaml::new(folder.path().join("state.yaml")));
}
