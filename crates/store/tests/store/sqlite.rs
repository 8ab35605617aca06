//! State written by one limiter is restored and passed on to other limiters.

use paceline_limiter::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_limiter::Quota;
use paceline_limiter::limiter::{
    Boot, BucketChanges, KeyChanges, ManualClock, NamedQuota, QuotaOrigin, RefusalKind,
};
use paceline_limiter::quota::{Calendar, Dimension, Period, Window};
use paceline_store::{Sqlite, State, Store};
use tempfile::TempDir;

pub(crate) const START: Timestamp = ManualClock::START;
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    (folder, path)
}

pub(crate) fn opened(path: &Path, now: Timestamp) -> (Sqlite, State) {
    let mut store = Sqlite::new(path);
    let state = store.open(now).unwrap();
    (store, state)
}

fn booted(path: &Path, now: Timestamp, boot: u128, uptime: Duration) -> (Sqlite, State) {
    let mut store = Sqlite::new(path);
    store.set_boot(Some(Boot::new(boot, uptime)));
    let state = store.open(now).unwrap();
    (store, state)
}

/// Returns changes to the requests per day of a key.
pub(crate) fn change(key: &str, taken: &[(Timestamp, i64)], held: u64) -> KeyChanges {
    let bucket = BucketChanges::new(Dimension::Requests, Window::DAY, taken.to_vec(), held);
    let mut change = KeyChanges::new(key);
    change.buckets.push(bucket);
    change
}

/// Returns the entries of a key's requests per day in a state.
pub(crate) fn taken(state: &State, key: &str) -> Vec<(Timestamp, u64)> {
    let key = state.keys.iter().find(|kept| kept.key == key);
    key.map_or_else(Vec::new, |key| key.buckets[0].saved.taken.clone())
}

pub(crate) fn sync(store: &mut Sqlite, changes: &[KeyChanges], now: Timestamp) -> Vec<KeyChanges> {
    store.sync(changes, None, now).unwrap()
}

#[test]
fn usage_survives_a_restart() {
    let (_folder, path) = folder();
    let (mut store, state) = opened(&path, START);
    assert_eq!(state, State::default());
    sync(
        &mut store,
        &[change("a", &[(START, 3), (START + Duration::from_nanos(5), 4)], 0)],
        START + Duration::from_nanos(10),
    );
    sync(
        &mut store,
        &[change("a", &[(START + Duration::from_nanos(20), 1)], 0), change("b", &[(START, 9)], 0)],
        START + Duration::from_nanos(30),
    );
    store.close(START + Duration::from_nanos(40)).unwrap();
    let (_store, state) = opened(&path, START + SECOND);
    assert_eq!(
        taken(&state, "a"),
        [(START, 3), (START + Duration::from_nanos(5), 4), (START + Duration::from_nanos(20), 1)]
    );
    assert_eq!(taken(&state, "b"), [(START, 9)]);
}

#[test]
fn other_stores_receive_changes_once() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut other, _) = opened(&path, START);
    assert_eq!(sync(&mut one, &[change("a", &[(START, 3)], 0)], START), []);
    assert_eq!(sync(&mut other, &[], START), [change("a", &[(START, 3)], 0)]);
    assert_eq!(sync(&mut other, &[], START), []);
    assert_eq!(
        sync(
            &mut other,
            &[change("a", &[(START + Duration::from_nanos(1), -2)], 0)],
            START + Duration::from_nanos(1)
        ),
        []
    );
    assert_eq!(
        sync(&mut one, &[], START + Duration::from_nanos(1)),
        [change("a", &[(START + Duration::from_nanos(1), -2)], 0)]
    );
}

#[test]
fn held_amount_of_others_is_reported_until_zero() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut two, _) = opened(&path, START);
    sync(&mut one, &[change("a", &[], 3)], START);
    sync(&mut two, &[change("a", &[], 4)], START);
    let (mut three, _) = opened(&path, START);
    assert_eq!(sync(&mut three, &[], START), [change("a", &[], 7)]);
    assert_eq!(sync(&mut one, &[], START), [change("a", &[], 4)]);
    sync(&mut one, &[change("a", &[(START, 2)], 0)], START);
    assert_eq!(sync(&mut three, &[], START), [change("a", &[(START, 2)], 4)]);
    sync(&mut two, &[change("a", &[], 0)], START);
    assert_eq!(sync(&mut three, &[], START), [change("a", &[], 0)]);
    assert_eq!(sync(&mut three, &[], START), []);
}

#[test]
fn held_amount_at_close_counts_as_used() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut two, _) = opened(&path, START);
    sync(&mut one, &[change("a", &[], 3)], START);
    sync(&mut two, &[], START);
    one.close(START + Duration::from_nanos(9)).unwrap();
    assert_eq!(
        sync(&mut two, &[], START + Duration::from_nanos(9)),
        [change("a", &[(START + Duration::from_nanos(9), 3)], 0)]
    );
    let (_store, state) = opened(&path, START + Duration::from_nanos(10));
    assert_eq!(taken(&state, "a"), [(START + Duration::from_nanos(9), 3)]);
}

#[test]
fn reset_is_received_by_others_and_drops_earlier_usage() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut two, _) = opened(&path, START);
    sync(&mut one, &[change("a", &[(START, 3)], 0)], START);
    let mut reset = change("a", &[(START + Duration::from_nanos(5), 1)], 0);
    reset.reset_at = Some(START + Duration::from_nanos(5));
    sync(&mut one, &[reset.clone()], START + Duration::from_nanos(6));
    // This store reports usage from before the reset afterwards.
    let received = sync(
        &mut two,
        &[change("a", &[(START + Duration::from_nanos(4), 8)], 0)],
        START + Duration::from_nanos(7),
    );
    assert_eq!(received, [reset]);
    assert_eq!(sync(&mut one, &[], START + Duration::from_nanos(8)), []);
    assert_eq!(
        taken(&opened(&path, START + Duration::from_nanos(9)).1, "a"),
        [(START + Duration::from_nanos(5), 1)]
    );
}

#[test]
fn cool_down_is_received_by_others_and_stored() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut two, _) = opened(&path, START);
    let mut cooling = KeyChanges::new("a");
    cooling.cooling_until = Some(START + 30 * SECOND);
    cooling.cooling_kind = Some(RefusalKind::Window);
    sync(&mut one, &[cooling.clone()], START);
    assert_eq!(sync(&mut two, &[], START), [cooling]);
    let until = |now| opened(&path, now).1.keys.first().and_then(|key| key.cooling_until);
    assert_eq!(until(START + SECOND), Some(START + 30 * SECOND));
    assert_eq!(until(START + 31 * SECOND), None);
}

#[test]
fn shorter_cool_down_does_not_end_longer_one() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut two, _) = opened(&path, START);
    for (store, seconds) in [(&mut one, 60), (&mut two, 5)] {
        let mut cooling = KeyChanges::new("a");
        cooling.cooling_until = Some(START + Duration::from_secs(seconds));
        sync(store, &[cooling], START);
    }
    let (_store, state) = opened(&path, START);
    assert_eq!(state.keys[0].cooling_until, Some(START + 60 * SECOND));
}

#[test]
fn ended_cool_down_is_deleted_by_its_owner_only() {
    let (_folder, path) = folder();
    let (mut one, _) = opened(&path, START);
    let (mut two, _) = opened(&path, START);
    let cooling = |until| {
        let mut change = KeyChanges::new("a");
        change.cooling_until = Some(until);
        change
    };
    let until = || opened(&path, START).1.keys.first().and_then(|key| key.cooling_until);
    sync(&mut one, &[cooling(START + 30 * SECOND)], START);
    sync(&mut two, &[cooling(Timestamp::UNIX_EPOCH)], START);
    assert_eq!(until(), Some(START + 30 * SECOND));
    sync(&mut one, &[cooling(START)], START);
    assert_eq!(until(), None);
}

#[test]
fn wrong_clock_locks_key_for_one_window_at_most() {
    let (_folder, path) = folder();
    let far = START + 400 * DAY;
    let (mut store, _) = opened(&path, far);
    let mut change = change("a", &[(far, 3)], 0);
    change.cooling_until = Some(far + 30 * SECOND);
    sync(&mut store, &[change], far);
    store.close(far).unwrap();
    let (mut store, state) = opened(&path, START);
    assert_eq!(taken(&state, "a"), [(START, 3)]);
    assert_eq!(state.keys[0].cooling_until, Some(START + 30 * SECOND));
    store.close(START).unwrap();
    let (_store, state) = opened(&path, START + SECOND);
    assert_eq!(taken(&state, "a"), [(START, 3)], "the time is not moved again");
    assert_eq!(state.keys[0].cooling_until, Some(START + 30 * SECOND));
    let (_store, state) = opened(&path, START + 2 * DAY);
    assert_eq!(state.keys, []);
}

#[test]
fn clock_changed_between_runs_moves_stored_times() {
    for is_back in [true, false] {
        let (_folder, path) = folder();
        let (mut store, _) = booted(&path, START, 1, 100 * SECOND);
        sync(&mut store, &[change("a", &[(START, 3)], 0)], START);
        store.close(START).unwrap();
        let moved = if is_back { START - 3 * DAY } else { START + 3 * DAY };
        let now = moved + 60 * SECOND;
        let (_store, state) = booted(&path, now, 1, 160 * SECOND);
        assert_eq!(taken(&state, "a"), [(now - 60 * SECOND, 3)], "{is_back}");
        let peeked = Sqlite::peek(&path, now, Some(Boot::new(1, 160 * SECOND))).unwrap();
        assert_eq!(taken(&peeked, "a"), [(now - 60 * SECOND, 3)], "{is_back}");
    }
}

#[test]
fn quotas_are_stored_with_origin_and_per_owner() {
    let (_folder, path) = folder();
    let day = Calendar::new(Period::Day, "America/Los_Angeles").unwrap();
    let quota = Quota::new().rpm(5).on_calendar(Dimension::Tokens, 9, &day);
    let set = |name: &str| NamedQuota::new(name, quota.clone(), QuotaOrigin::Set);
    let configured =
        |name: &str| NamedQuota::new(name, Quota::new().rpm(1), QuotaOrigin::Configured);
    let (mut one, _) = opened(&path, START);
    one.sync(&[], Some(&[set("a"), configured("b")]), START).unwrap();
    let (mut two, state) = opened(&path, START);
    assert_eq!(state.quotas, [set("a"), configured("b")]);
    two.sync(&[], Some(&[configured("c")]), START).unwrap();
    let names = || -> Vec<String> {
        let state = Sqlite::peek(&path, START, None).unwrap();
        state.quotas.into_iter().map(|quota| quota.name).collect()
    };
    assert_eq!(names(), ["b", "c"], "the second store took over `a` and removed it");
    one.sync(&[], Some(&[configured("d")]), START).unwrap();
    assert_eq!(names(), ["c", "d"]);
}

#[test]
fn quota_set_by_another_store_is_not_overwritten() {
    let (_folder, path) = folder();
    let set = |name: &str, rpm| NamedQuota::new(name, Quota::new().rpm(rpm), QuotaOrigin::Set);
    let (mut one, _) = opened(&path, START);
    one.sync(&[], Some(&[set("a", 5)]), START).unwrap();
    let (mut two, _) = opened(&path, START);
    two.sync(&[], Some(&[set("a", 5)]), START).unwrap();
    one.sync(&[], Some(&[set("a", 9)]), START).unwrap();
    two.sync(&[], Some(&[set("a", 5), set("b", 1)]), START).unwrap();
    let state = Sqlite::peek(&path, START, None).unwrap();
    assert_eq!(state.quotas, [set("a", 9), set("b", 1)]);
    two.sync(&[], Some(&[set("a", 7), set("b", 1)]), START).unwrap();
    let state = Sqlite::peek(&path, START, None).unwrap();
    assert_eq!(state.quotas, [set("a", 7), set("b", 1)]);
}

#[cfg(unix)]
#[test]
fn database_in_use_is_readable_through_a_link() {
    let (folder, path) = folder();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let (mut store, _) = opened(&link, START);
    sync(&mut store, &[change("a", &[(START, 3)], 0)], START);
    assert_eq!(taken(&Sqlite::peek(&link, START, None).unwrap(), "a"), [(START, 3)]);
}

#[test]
fn peek_creates_no_file_and_reports_held_amounts() {
    let (folder, path) = folder();
    assert!(Sqlite::peek(&path, START, None).is_err());
    assert!(Sqlite::reset(&path, None, START, None).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let (mut store, _) = opened(&path, START);
    sync(&mut store, &[change("a", &[(START, 3)], 2)], START);
    let state = Sqlite::peek(&path, START, None).unwrap();
    assert_eq!(state.keys[0].buckets[0].saved.held, 2);
    assert_eq!(taken(&state, "a"), [(START, 3)]);
    store.close(START).unwrap();
    drop(store);
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files(), 1);
    assert_eq!(taken(&Sqlite::peek(&path, START, None).unwrap(), "a").len(), 1);
    assert_eq!(files(), 1);
}

#[test]
fn external_reset_is_received_by_running_store() {
    let (_folder, path) = folder();
    let (mut store, _) = opened(&path, START);
    let both = [change("a", &[(START, 3)], 0), change("b", &[(START, 3)], 1)];
    sync(&mut store, &both, START);
    Sqlite::reset(&path, Some("a"), START + Duration::from_nanos(1), None).unwrap();
    let received = sync(&mut store, &[], START + Duration::from_nanos(2));
    assert_eq!(received.len(), 1);
    assert_eq!(
        (&*received[0].key, received[0].reset_at),
        ("a", Some(START + Duration::from_nanos(1)))
    );
    Sqlite::reset(&path, None, START + Duration::from_nanos(3), None).unwrap();
    assert_eq!(sync(&mut store, &[], START + Duration::from_nanos(4)).len(), 2);
    let state = Sqlite::peek(&path, START + Duration::from_nanos(5), None).unwrap();
    assert_eq!(taken(&state, "b"), []);
    assert_eq!(state.keys[0].buckets[0].saved.held, 1, "requests in flight stay held");
}

#[test]
fn replace_twice_equals_replace_once() {
    let (_folder, path) = folder();
    let (mut store, _) = opened(&path, START);
    sync(&mut store, &[change("x", &[(START, 1)], 0), change("a", &[(START, 3)], 0)], START);
    let mut wanted = Sqlite::peek(&path, START, None).unwrap();
    wanted.keys.retain(|key| key.key == "a");
    wanted.keys[0].cooling_until = Some(START + SECOND);
    wanted.quotas.push(NamedQuota::new("q", Quota::new().rpm(5), QuotaOrigin::Set));
    for _ in 0..2 {
        Sqlite::replace(&path, &wanted, START, None).unwrap();
        assert_eq!(Sqlite::peek(&path, START, None).unwrap(), wanted);
    }
    let received = sync(&mut store, &[], START);
    assert_eq!(received.iter().filter(|key| key.reset_at.is_some()).count(), 2);
}
