//! A limiter with a store: across restarts, together with other limiters, and while the store fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Boot, Clock, KeyChanges, ManualClock, NamedQuota};
use paceline_limiter::{Cost, Limiter, Quota};
use paceline_store::{Persistence, Sqlite, State, Store, StoreError};
use parking_lot::Mutex;

use super::sqlite::{START, folder};
use super::sqlite_owners::total;

/// Longer than any test; the tests flush explicitly.
const NEVER: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn limiter(clock: &ManualClock) -> Limiter {
    let quota = Quota::new().rpd(5).concurrency(3);
    Limiter::builder().quota("k", quota).clock(clock.clone()).build().unwrap()
}

fn limiter_with_store(path: &Path, clock: &ManualClock) -> (Limiter, Persistence) {
    let limiter = limiter(clock);
    let persistence = Persistence::start(&limiter, Sqlite::new(path), NEVER).unwrap();
    (limiter, persistence)
}

/// Returns the number of requests admitted before a refusal; each ends immediately.
fn admit(limiter: &Limiter) -> usize {
    std::iter::from_fn(|| limiter.try_acquire("k", &Cost::new()).ok()).count()
}

#[test]
fn exhausted_daily_limit_survives_restart() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    let (limiter, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&limiter), 5);
    drop(limiter);
    clock.advance(HOUR);
    let (limiter, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&limiter), 0);
    drop(limiter);
    clock.advance(24 * HOUR);
    let (limiter, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&limiter), 5);
    drop(limiter);
    assert_eq!(total(&path, "k"), 10);
}

#[test]
fn clock_changed_between_runs_neither_refunds_nor_locks() {
    let day = 24 * HOUR;
    let up =
        |by: Duration| Boot::new(7, Duration::from_nanos(u64::try_from(by.as_nanos()).unwrap()));
    // By the uptime, one hour passes between the runs; the clock differs.
    for clock_step in [Duration::ZERO, 5 * day, 10 * day + HOUR, 40 * day] {
        let (_folder, path) = folder();
        let clock = ManualClock::with_boot(up(100 * day));
        clock.advance(10 * day);
        let (limiter, _persistence) = limiter_with_store(&path, &clock);
        assert_eq!(admit(&limiter), 5);
        drop(limiter);
        let clock = ManualClock::with_boot(up(110 * day + HOUR - clock_step));
        clock.advance(clock_step);
        let (limiter, _persistence) = limiter_with_store(&path, &clock);
        assert_eq!(admit(&limiter), 0, "{clock_step:?}");
        drop(limiter);
        clock.advance(day);
        let (limiter, _persistence) = limiter_with_store(&path, &clock);
        assert_eq!(admit(&limiter), 5, "{clock_step:?}");
    }
}

#[test]
fn usage_after_suspend_counts_today_for_other_limiters() {
    let (_folder, path) = folder();
    let up =
        |by: Duration| Boot::new(7, Duration::from_nanos(u64::try_from(by.as_nanos()).unwrap()));
    let clock = ManualClock::with_boot(up(HOUR));
    let (slept, slept_kept) = limiter_with_store(&path, &clock);
    assert!(slept.try_acquire("k", &Cost::new()).is_ok());
    slept_kept.flush_now().unwrap();
    // The limiter's clock resumes at the time of the suspend.
    clock.suspend(30 * HOUR);
    (0..2).for_each(|_| drop(slept.try_acquire("k", &Cost::new()).unwrap()));
    slept_kept.flush_now().unwrap();
    let clock = ManualClock::with_boot(up(HOUR));
    clock.advance(30 * HOUR);
    let (fresh, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&fresh), 3, "of five, two are used today and one was used yesterday");
}

#[test]
fn clock_years_ahead_locks_key_for_one_window_at_most() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    clock.advance(10_000 * 24 * HOUR);
    let (limiter, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&limiter), 5);
    drop(limiter);
    let clock = ManualClock::new();
    for hours in [0, 12, 23] {
        clock.advance_to(
            START + Duration::from_nanos(u64::try_from((hours * HOUR).as_nanos()).unwrap()),
        );
        let (limiter, _persistence) = limiter_with_store(&path, &clock);
        assert_eq!(admit(&limiter), 0, "{hours}");
    }
    clock.advance(2 * HOUR);
    assert_eq!(admit(&limiter_with_store(&path, &clock).0), 5);
}

#[test]
fn limiters_sharing_a_store_count_usage_and_holds_of_others() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    let (one, persistence_one) = limiter_with_store(&path, &clock);
    let (two, persistence_two) = limiter_with_store(&path, &clock);
    let in_flight: Vec<_> = (0..2).map(|_| one.try_acquire("k", &Cost::new()).unwrap()).collect();
    persistence_one.flush_now().unwrap();
    persistence_two.flush_now().unwrap();
    let third = two.try_acquire("k", &Cost::new()).unwrap();
    assert!(two.try_acquire("k", &Cost::new()).is_err(), "three requests are in flight");
    drop((in_flight, third));
    for persistence in [&persistence_one, &persistence_two, &persistence_one, &persistence_two] {
        persistence.flush_now().unwrap();
    }
    assert_eq!(admit(&two), 2, "three of five are used");
    persistence_two.flush_now().unwrap();
    persistence_one.flush_now().unwrap();
    assert_eq!(admit(&one), 0);
    assert_eq!(total(&path, "k"), 5);
}

#[test]
fn reset_of_one_limiter_resets_all() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    let (one, persistence_one) = limiter_with_store(&path, &clock);
    let (two, persistence_two) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&one), 5);
    persistence_one.flush_now().unwrap();
    persistence_two.flush_now().unwrap();
    assert_eq!(admit(&two), 0);
    clock.advance(SECOND);
    one.reset("k");
    persistence_one.flush_now().unwrap();
    persistence_two.flush_now().unwrap();
    assert_eq!(admit(&two), 5);
}

#[test]
fn set_quotas_are_restored_and_configured_ones_override() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    let (one, persistence) = limiter_with_store(&path, &clock);
    one.quotas().set("other", &Quota::new().rpm(7)).unwrap();
    one.quotas().set("k", &Quota::new().rpm(9)).unwrap();
    persistence.flush_now().unwrap();
    drop(one);
    let (two, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(two.quotas().of("other"), Quota::new().rpm(7));
    assert_eq!(two.quotas().of("k"), Quota::new().rpd(5).concurrency(3));
}

#[tokio::test]
async fn close_writes_all_usage_and_drop_writes_later_usage() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    let (limiter, persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&limiter), 5);
    clock.advance(48 * HOUR);
    let permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.close().await;
    assert!(persistence.status().kept_at.is_some_and(|at| at == clock.now()));
    assert!(total(&path, "k") >= 5);
    drop(permit);
    drop(limiter);
    assert_eq!(total(&path, "k"), 6);
}

#[test]
fn background_thread_flushes_at_interval() {
    let (_folder, path) = folder();
    let clock = ManualClock::new();
    let (one, two) = (limiter(&clock), limiter(&clock));
    let often = Duration::from_millis(5);
    let _kept = [&one, &two].map(|l| Persistence::start(l, Sqlite::new(&path), often).unwrap());
    assert_eq!(admit(&one), 5);
    while two.decide("k", &Cost::new()).is_allowed() {
        std::thread::yield_now();
    }
}

/// A store that fails on demand and records its calls.
#[derive(Debug, Clone, Default)]
struct FlakyStore(Arc<Mutex<FlakyState>>);

#[derive(Debug, Default)]
struct FlakyState {
    failure: Option<&'static str>,
    written: Vec<Vec<KeyChanges>>,
    closed: bool,
}

impl FlakyStore {
    fn set_failure(&self, reason: Option<&'static str>) {
        self.0.lock().failure = reason;
    }

    fn result(&self) -> Result<(), StoreError> {
        self.0.lock().failure.map_or(Ok(()), |reason| {
            // `StoreError` has no public constructor.
            let mut error = Sqlite::peek(Path::new("nowhere.db"), START, None).unwrap_err();
            (error.path, error.reason) = (PathBuf::from("flaky.db"), reason.to_owned());
            Err(error)
        })
    }
}

impl Store for FlakyStore {
    fn open(&mut self, _now: Timestamp) -> Result<State, StoreError> {
        self.result().map(|()| State::default())
    }

    fn sync(
        &mut self,
        changes: &[KeyChanges],
        _quotas: Option<&[NamedQuota]>,
        _now: Timestamp,
    ) -> Result<Vec<KeyChanges>, StoreError> {
        self.result()?;
        self.0.lock().written.push(changes.to_vec());
        Ok(Vec::new())
    }

    fn close(&mut self, _now: Timestamp) -> Result<(), StoreError> {
        self.result()?;
        self.0.lock().closed = true;
        Ok(())
    }
}

#[test]
fn store_failure_keeps_changes_until_written() {
    let clock = ManualClock::new();
    let (limiter, store) = (limiter(&clock), FlakyStore::default());
    let persistence = Persistence::start(&limiter, store.clone(), NEVER).unwrap();
    store.set_failure(Some("the disk is full"));
    for pending in [1, 1] {
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        assert!(persistence.flush_now().is_err());
        clock.advance(SECOND);
        let status = persistence.status();
        assert_eq!(status.pending_keys, pending);
        assert_eq!(status.flushes, 1, "the flush at the start");
        assert_eq!(status.trouble.unwrap().reason, "the disk is full");
    }
    store.set_failure(None);
    persistence.flush_now().unwrap();
    assert_eq!(persistence.status().trouble, None);
    assert_eq!((persistence.status().flushes, persistence.status().failures), (2, 2));
    assert_eq!(persistence.status().pending_keys, 0);
    assert_eq!(persistence.status().kept_at, Some(clock.now()));
    let written = store.0.lock().written.last().cloned().unwrap();
    let taken = written.iter().flat_map(|key| &key.buckets).flat_map(|bucket| &bucket.taken);
    assert_eq!(taken.map(|(_, amount)| amount).sum::<i64>(), 2);
    drop(limiter);
    assert!(store.0.lock().closed, "the store is closed");
}

#[test]
fn unwritten_changes_are_written_on_drop() {
    let clock = ManualClock::new();
    let (limiter, store) = (limiter(&clock), FlakyStore::default());
    let persistence = Persistence::start(&limiter, store.clone(), NEVER).unwrap();
    store.set_failure(Some("the disk is full"));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    persistence.flush_now().unwrap_err();
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    store.set_failure(None);
    drop(limiter);
    let written = store.0.lock().written.last().cloned().unwrap();
    let taken = written.iter().flat_map(|key| &key.buckets).flat_map(|bucket| &bucket.taken);
    assert_eq!(taken.map(|(_, amount)| amount).sum::<i64>(), 2);
    persistence.flush_now().unwrap();
}

#[test]
fn store_failing_to_open_leaves_limiter_unchanged() {
    let clock = ManualClock::new();
    let (limiter, store) = (limiter(&clock), FlakyStore::default());
    store.set_failure(Some("is damaged"));
    let error = Persistence::start(&limiter, store, NEVER).unwrap_err();
    assert_eq!(error.to_string(), "flaky.db: is damaged");
    assert_eq!(admit(&limiter), 5);
}
