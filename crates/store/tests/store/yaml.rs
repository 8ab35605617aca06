//! A state file between runs of one process.

use paceline_limiter::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paceline_limiter::limiter::{
    Boot, BucketChanges, KeyChanges, ManualClock, NamedQuota, QuotaOrigin,
};
use paceline_limiter::quota::{Calendar, Dimension, Limit, Period, Quota, Window};
use paceline_store::{State, Store, Yaml};
use tempfile::TempDir;

const S: Duration = Duration::from_secs(1);
const NOW: Timestamp = ManualClock::START;
const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.yaml");
    (folder, path)
}

/// Returns changes to the tokens per minute of a key.
pub(super) fn used(key: &str, taken: &[(Timestamp, i64)], held: u64) -> KeyChanges {
    used_of(key, Dimension::Tokens, Window::MINUTE, taken, held)
}

fn used_of(
    key: &str,
    dimension: Dimension,
    window: Window,
    taken: &[(Timestamp, i64)],
    held: u64,
) -> KeyChanges {
    let mut changes = KeyChanges::new(key);
    changes.buckets.push(BucketChanges::new(dimension, window, taken.to_vec(), held));
    changes
}

/// Returns each key with the entries of its first bucket.
fn taken(state: &State) -> Vec<(&str, &[(Timestamp, u64)])> {
    state.keys.iter().map(|key| (&*key.key, &*key.buckets[0].saved.taken)).collect()
}

fn written(path: &Path, changes: &[KeyChanges], now: Timestamp) {
    let mut store = Yaml::new(path);
    store.open(now).unwrap();
    store.sync(changes, None, now).unwrap();
    store.close(now).unwrap();
}

#[test]
fn usage_is_restored_to_the_nanosecond() {
    let (_folder, path) = file();
    let at = NOW + Duration::from_nanos(123_456_789);
    written(&path, &[used("a", &[(NOW, 7), (at, 1_500)], 0), used("b", &[(at, 2)], 0)], at);
    let state = Yaml::new(&path).open(at + Duration::from_nanos(1)).unwrap();
    assert_eq!(
        taken(&state),
        [("a", &[(at, 1_507)][..]), ("b", &[(at, 2)][..])],
        "entries within 1/256 of a minute are merged"
    );
    assert_eq!(Yaml::peek(&path, at + Duration::from_nanos(1), None).unwrap(), state);
}

#[test]
fn file_content_is_readable_yaml() {
    let (_folder, path) = file();
    let at = NOW + Duration::from_nanos(1);
    let mut store = Yaml::new(&path);
    store.set_boot(Some(Boot::new(0xabc, 3 * S)));
    store.open(at).unwrap();
    let bucket = Limit::new(
        Dimension::custom("pages"),
        30,
        Window::new(std::time::Duration::from_millis(90_500)).unwrap(),
    );
    let bucket = bucket.map(|limit| limit.with_burst(5));
    let pacific = Calendar::new(Period::Day, "America/Los_Angeles").unwrap();
    let quota = Quota::new()
        .limit(bucket)
        .on_calendar(Dimension::Requests, 9, &pacific)
        .with_debt()
        .shared();
    let mut changes = used("gpt-4o", &[(at, 1_500)], 80);
    changes.cooling_until = Some(at + 30 * S);
    store
        .sync(&[changes], Some(&[NamedQuota::new("gpt-*", quota, QuotaOrigin::Learned)]), at)
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, include_str!("fixtures/state.yaml"));
}

#[test]
fn format_in_the_documentation_is_accepted() {
    let source = include_str!("../../src/yaml/store.rs");
    let (_, rest) = source.split_once("/// ```yaml\n").unwrap();
    let (text, _) = rest.split_once("/// ```\n").unwrap();
    let text: String = text
        .lines()
        .map(|line| line.trim_start_matches("///").get(1..).unwrap_or_default().to_owned() + "\n")
        .collect();
    let (_folder, path) = file();
    fs::write(&path, text).unwrap();
    // 2026-02-20T14:32:01.123456789Z.
    let state = Yaml::peek(&path, Timestamp::from_nanos(1_771_597_921_123_456_789), None).unwrap();
    assert_eq!(state.quotas[0].quota.limits().len(), 2);
    let (key, at) = (&state.keys[0], Timestamp::from_nanos(1_771_597_900_987_654_321));
    assert_eq!(key.buckets[0].saved.taken[0], (at, 1_500));
    assert_eq!((key.buckets[0].saved.held, key.cooling_until.is_some()), (800, true));
}

#[test]
fn missing_directories_are_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some/where/state.yaml");
    written(&path, &[used("a", &[(NOW, 7)], 0)], NOW);
    assert_eq!(taken(&Yaml::peek(&path, NOW, None).unwrap()), [("a", &[(NOW, 7)][..])]);
}

#[test]
fn missing_or_empty_file_is_an_empty_state() {
    let (_folder, path) = file();
    assert_eq!(Yaml::new(&path).open(NOW).unwrap(), State::default());
    fs::write(&path, " \n").unwrap();
    assert_eq!(Yaml::peek(&path, NOW, None).unwrap(), State::default());
    assert_eq!(Yaml::new(&path).open(NOW).unwrap(), State::default());
}

#[test]
fn missing_file_is_neither_peeked_nor_reset_nor_created() {
    let (folder, path) = file();
    let error = Yaml::peek(&path, NOW, None).unwrap_err().to_string();
    assert!(error.contains("cannot be read: No such file"), "{error}");
    assert!(Yaml::reset(&path, None, NOW, None).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn file_is_written_only_after_changes() {
    let (_folder, path) = file();
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    store.sync(&[], None, NOW).unwrap();
    assert!(!path.exists());
    let quotas = [NamedQuota::new("a", Quota::new().rpm(5), QuotaOrigin::Set)];
    store.sync(&[used("a", &[(NOW, 7)], 0)], Some(&quotas), NOW).unwrap();
    fs::remove_file(&path).unwrap();
    store.sync(&[], Some(&quotas), NOW + Duration::from_nanos(1)).unwrap();
    store.sync(&[used("a", &[], 0)], None, NOW + Duration::from_nanos(1)).unwrap();
    store.close(NOW + Duration::from_nanos(1)).unwrap();
    assert!(!path.exists());
}

#[test]
fn expired_entries_are_dropped() {
    let (_folder, path) = file();
    let day = used_of("a", Dimension::Requests, Window::DAY, &[(NOW, 3)], 0);
    written(&path, &[used("a", &[(NOW, 7)], 0), day], NOW);
    let dimensions = |now| {
        let state = Yaml::peek(&path, now, None).unwrap();
        let key = state.keys.first();
        key.map(|key| key.buckets.iter().map(|b| b.dimension.clone()).collect::<Vec<_>>())
    };
    assert_eq!(dimensions(NOW + 60 * S), Some(vec![Dimension::Requests, Dimension::Tokens]));
    assert_eq!(dimensions(NOW + 90 * S), Some(vec![Dimension::Requests]));
    assert_eq!(dimensions(NOW + 2 * DAY), None);
}

#[test]
fn held_amount_of_killed_process_counts_as_used() {
    let (_folder, path) = file();
    let in_flight = used_of("a", Dimension::Concurrency, Window::MINUTE, &[], 3);
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    store.sync(&[used("a", &[(NOW, 7)], 500), in_flight], None, NOW).unwrap();
    let running = Yaml::peek(&path, NOW + S, None).unwrap();
    assert_eq!(running.keys[0].buckets.iter().map(|b| b.saved.held).collect::<Vec<_>>(), [500, 3]);
    drop(store);
    let state = Yaml::new(&path).open(NOW + S).unwrap();
    assert_eq!(taken(&state), [("a", &[(NOW, 7), (NOW + S, 500)][..])]);
    assert_eq!(state.keys[0].buckets.len(), 1, "no request is in flight any more");
}

#[test]
fn held_amount_at_close_counts_as_used() {
    let (_folder, path) = file();
    written(&path, &[used("a", &[(NOW, 7)], 500)], NOW);
    let state = Yaml::peek(&path, NOW, None).unwrap();
    assert_eq!(taken(&state), [("a", &[(NOW, 507)][..])]);
    assert_eq!(state.keys[0].buckets[0].saved.held, 0);
}

#[test]
fn reset_drops_earlier_usage_and_keeps_later_usage() {
    let (_folder, path) = file();
    let mut first = used("a", &[(NOW, 7)], 0);
    first.cooling_until = Some(NOW + 30 * S);
    let mut again = used("a", &[(NOW + S, 2)], 0);
    again.reset_at = Some(NOW + S);
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    store.sync(&[first], None, NOW).unwrap();
    store.sync(&[again], None, NOW + S).unwrap();
    let state = Yaml::peek(&path, NOW + S, None).unwrap();
    assert_eq!(taken(&state), [("a", &[(NOW + S, 2)][..])]);
    assert_eq!(state.keys[0].cooling_until, None);
}

#[test]
fn file_can_be_reset_by_key_or_whole_and_keeps_quotas() {
    let (_folder, path) = file();
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    let quotas = [NamedQuota::new("a", Quota::new().rpm(5), QuotaOrigin::Set)];
    let changes = ["a", "b", "c"].map(|key| used(key, &[(NOW, 7)], 0));
    store.sync(&changes, Some(&quotas), NOW).unwrap();
    let refused = Yaml::reset(&path, Some("a"), NOW, None).unwrap_err().to_string();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    store.close(NOW).unwrap();
    Yaml::reset(&path, Some("a"), NOW, None).unwrap();
    Yaml::reset(&path, Some("unknown"), NOW, None).unwrap();
    let state = Yaml::peek(&path, NOW, None).unwrap();
    assert_eq!(taken(&state).len(), 2);
    Yaml::reset(&path, None, NOW, None).unwrap();
    let state = Yaml::peek(&path, NOW, None).unwrap();
    assert_eq!((state.keys.len(), &*state.quotas), (0, &quotas[..]));
}

#[test]
fn cool_down_is_restored_and_can_be_cancelled() {
    let (_folder, path) = file();
    let cooling = |until| {
        let mut changes = KeyChanges::new("a");
        changes.cooling_until = Some(until);
        changes
    };
    let until =
        |now| Yaml::peek(&path, now, None).unwrap().keys.first().and_then(|k| k.cooling_until);
    written(&path, &[cooling(NOW + 30 * S)], NOW);
    assert_eq!(until(NOW + 29 * S), Some(NOW + 30 * S));
    assert_eq!(until(NOW - DAY), Some(NOW - DAY + 30 * S), "a clock that was set back");
    assert_eq!(until(NOW + 30 * S), None);
    written(&path, &[cooling(Timestamp::UNIX_EPOCH)], NOW + S);
    assert_eq!(until(NOW + S), None);
}

#[test]
fn changed_clock_neither_refunds_nor_locks_a_key() {
    let (_folder, path) = file();
    let boot = |uptime| Some(Boot::new(0xabc, uptime));
    let mut store = Yaml::new(&path);
    store.set_boot(boot(100 * S));
    store.open(NOW).unwrap();
    let day = used_of("a", Dimension::Requests, Window::DAY, &[(NOW, 3)], 0);
    store.sync(&[day], None, NOW).unwrap();
    drop(store);
    // One minute later by the uptime; the clock was changed.
    for now in [NOW - 400 * DAY, NOW + 400 * DAY] {
        let state = Yaml::peek(&path, now, boot(160 * S)).unwrap();
        assert_eq!(taken(&state), [("a", &[(now - 60 * S, 3)][..])]);
    }
    // After another boot, times in the future count as now.
    let state = Yaml::peek(&path, NOW - 400 * DAY, Some(Boot::new(2, S))).unwrap();
    assert_eq!(taken(&state), [("a", &[(NOW - 400 * DAY, 3)][..])]);
}

#[test]
fn usage_moved_at_start_is_not_moved_again() {
    let (_folder, path) = file();
    let open = |uptime, now| {
        let mut store = Yaml::new(&path);
        store.set_boot(Some(Boot::new(0xabc, uptime)));
        let state = store.open(now).unwrap();
        (store, state)
    };
    let (mut store, _) = open(100 * S, NOW);
    store
        .sync(&[used_of("a", Dimension::Requests, Window::DAY, &[(NOW, 3)], 0)], None, NOW)
        .unwrap();
    drop(store);
    // The clock is an hour ahead.
    let now = NOW + 3_600 * S;
    let (mut store, _) = open(101 * S, now + S);
    store.sync(&[used("b", &[(now, 1)], 0)], None, now + S).unwrap();
    drop(store);
    let (_store, state) = open(102 * S, now + 2 * S);
    assert_eq!(taken(&state), [("a", &[(now, 3)][..]), ("b", &[(now, 1)][..])]);
}

#[test]
fn replace_removes_previous_state_and_quotas() {
    let (_folder, path) = file();
    written(&path, &[used("old", &[(NOW, 7)], 0)], NOW);
    let mut state = State::default();
    state.quotas.push(NamedQuota::new("a", Quota::new().rpm(5), QuotaOrigin::Set));
    Yaml::replace(&path, &state, NOW, None).unwrap();
    assert_eq!(Yaml::peek(&path, NOW, None).unwrap(), state);
    let _open = {
        let mut store = Yaml::new(&path);
        store.open(NOW).unwrap();
        store
    };
    let refused = Yaml::replace(&path, &State::default(), NOW, None).unwrap_err().to_string();
    assert!(refused.contains("in use by process"), "{refused}");
}

#[test]
fn sync_of_unopened_store_is_error() {
    let (_folder, path) = file();
    let mut store = Yaml::new(&path);
    let error = store.sync(&[used("a", &[(NOW, 7)], 0)], None, NOW).unwrap_err().to_string();
    assert_eq!(error, format!("{}: the store is not open", path.display()));
    store.close(NOW).unwrap();
    assert!(!format!("{store:?}").contains("key"));
}

#[cfg(unix)]
#[test]
fn permissions_are_kept_and_links_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (folder, path) = file();
    let target = folder.path().join("elsewhere.yaml");
    symlink("elsewhere.yaml", &path).unwrap();
    written(&path, &[used("a", &[(NOW, 7)], 0)], NOW);
    fs::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
    written(&path, &[used("b", &[(NOW, 7)], 0)], NOW);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(Yaml::peek(&target, NOW, None).unwrap().keys.len(), 2);
    // Two paths of one file share one lock.
    let mut store = Yaml::new(&path);
    store.open(NOW).unwrap();
    assert!(Yaml::new(&target).open(NOW).is_err());
    symlink("ring.yaml", folder.path().join("ring.yaml")).unwrap();
    let ring = Yaml::new(folder.path().join("ring.yaml")).open(NOW).unwrap_err().to_string();
    assert!(ring.contains("symbolic link loop"), "{ring}");
}
