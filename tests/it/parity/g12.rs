//! State in a YAML file: a missing or empty file is an empty state, and an invalid one is an error. Times
//! are kept to the nanosecond, and missing folders are created.

use std::fs;
use std::path::Path;
use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock, QuotaOrigin};
use paceline::quota::{Algorithm, Quota};
use paceline::store::{State, Store, Yaml};
use paceline_limiter::seam;

use super::rig::{S, builder, tokens, used};

/// Returns a limiter that restores the state of the file, and its store.
fn load(path: &Path, clock: &ManualClock, quota: Quota) -> (Limiter, Yaml) {
    let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
    let mut store = Yaml::new(path);
    let state = store.open(limiter.now()).unwrap();
    seam::restore_quotas(&limiter, &state.quotas);
    limiter.state().absorb(&state.keys);
    seam::track(&limiter);
    (limiter, store)
}

fn persist(limiter: &Limiter, store: &mut Yaml) {
    let (changes, quotas) = (seam::collect_changes(limiter), limiter.quotas().list());
    store.sync(&changes, Some(&quotas), limiter.now()).unwrap();
}

#[test]
fn g12_usage_and_quotas_are_restored_after_restart() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/state.yaml");
        let clock = ManualClock::new();
        let quota = Quota::new().rpm(10).tpm(1_000).rpd(20).with_algorithm(algorithm);
        let (first, mut store) = load(&path, &clock, quota.clone());
        first.try_acquire("k", &tokens(400)).unwrap().settle(&tokens(300));
        first.quotas().set("other", &Quota::new().rpm(5)).unwrap();
        persist(&first, &mut store);
        let in_flight = first.try_acquire("k", &tokens(200)).unwrap();
        persist(&first, &mut store);
        // The process is killed: the permit is never dropped, and the store isn't closed.
        std::mem::forget(in_flight);
        drop(store);

        let (second, _store) = load(&path, &clock, quota);
        assert_eq!(used(&second, "k"), [2, 500, 2], "{algorithm:?}");
        assert_eq!(second.stats("other").limits[0].limit, 5);
        let origins: Vec<_> = second.quotas().list().iter().map(|quota| quota.origin).collect();
        assert_eq!(origins, [QuotaOrigin::Configured, QuotaOrigin::Set]);
        clock.advance(Duration::from_secs(60));
        assert_eq!(used(&second, "k")[1], 0, "{algorithm:?}");
    }
}

#[test]
fn g12_exhausted_day_is_restored_to_the_nanosecond() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.yaml");
    let clock = ManualClock::new();
    let (first, mut store) = load(&path, &clock, Quota::new().rpd(2));
    clock.advance(Duration::from_nanos(123_456_789));
    let start = first.now();
    for _ in 0..2 {
        first.try_acquire("k", &tokens(0)).unwrap();
    }
    persist(&first, &mut store);
    drop(store);
    let (second, _store) = load(&path, &clock, Quota::new().rpd(2));
    clock.advance_to(start + 86_400 * S - Duration::from_nanos(1));
    assert!(second.try_acquire("k", &tokens(0)).is_err());
    clock.advance_to(start + 86_400 * S);
    assert!(second.try_acquire("k", &tokens(0)).is_ok());
}

#[test]
fn g12_missing_file_is_empty_and_broken_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.yaml");
    assert_eq!(Yaml::new(&path).open(ManualClock::START).unwrap(), State::default());
    fs::write(&path, "").unwrap();
    assert_eq!(Yaml::new(&path).open(ManualClock::START).unwrap(), State::default());
    for broken in ["version: 1\nkeys: [", "version: 1\nkeys: {}\n", "a: b\n"] {
        fs::write(&path, broken).unwrap();
        let error = Yaml::new(&path).open(ManualClock::START).unwrap_err().to_string();
        assert!(error.contains("state.yaml: ") && error.contains("was left unchanged"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    }
}
