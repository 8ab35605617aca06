//! What is used of limits that never reset, in stores.

use std::path::Path;
use std::time::Duration;

use paceline_limiter::limiter::{Clock, ManualClock};
use paceline_limiter::quota::{Quota, Usd};
use paceline_limiter::{Cost, Limiter};
use paceline_store::{Persistence, Sqlite, Store, Yaml};

/// Longer than any test; the tests flush explicitly.
const NEVER: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(366 * 86_400);

fn limiter(clock: &ManualClock) -> Limiter {
    let quota = Quota::new().tokens_total(100).requests_total(10).usd_total(Usd::from_dollars(5));
    Limiter::builder().quota("s:*", quota).clock(clock.clone()).build().unwrap()
}

fn used(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.stats(key).limits.iter().map(|limit| limit.used).collect()
}

fn assert_kept_until_reset<S: Store>(
    store: impl Fn() -> S,
    reset: impl Fn(paceline_limiter::Timestamp),
) {
    let clock = ManualClock::new();
    let cost = Cost::new().tokens(20).usd(Usd::from_micros(1_500_000));
    for run in 1..=3 {
        let limiter = limiter(&clock);
        let store = Persistence::start(&limiter, store(), NEVER).unwrap();
        drop(limiter.try_acquire("s:1", &cost).unwrap());
        store.flush_now().unwrap();
        assert_eq!(used(&limiter, "s:1"), [20 * run, run, 1_500_000 * run]);
        limiter.state().prune();
        drop((limiter, store));
        clock.advance(2 * YEAR);
    }
    let spent = limiter(&clock);
    let persisted = Persistence::start(&spent, store(), NEVER).unwrap();
    assert!(spent.try_acquire("s:1", &cost).is_err(), "$4.50 of $5.00 are spent");
    assert!(spent.try_acquire("s:2", &cost).is_ok());
    drop((spent, persisted));
    reset(clock.now());
    let fresh = limiter(&clock);
    let _persisted = Persistence::start(&fresh, store(), NEVER).unwrap();
    assert_eq!(used(&fresh, "s:1"), [0, 0, 0]);
}

#[test]
fn used_total_is_kept_over_years_until_reset() {
    let folder = tempfile::tempdir().unwrap();
    let (database, yaml) = (folder.path().join("state.db"), folder.path().join("state.yaml"));
    assert_kept_until_reset(
        || Sqlite::new(&database),
        |now| Sqlite::reset(&database, Some("s:1"), now, None).unwrap(),
    );
    assert_kept_until_reset(
        || Yaml::new(&yaml),
        |now| Yaml::reset(&yaml, Some("s:1"), now, None).unwrap(),
    );
}

/// Opens a limiter on a database that others have open too.
fn shared(path: &Path, clock: &ManualClock) -> (Limiter, Persistence) {
    let limiter = limiter(clock);
    let persistence = Persistence::start(&limiter, Sqlite::new(path), NEVER).unwrap();
    (limiter, persistence)
}

#[test]
fn processes_add_up_their_totals_beyond_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("state.db"), ManualClock::new());
    let parties = [shared(&path, &clock), shared(&path, &clock)];
    for (party, store) in parties.iter().cycle().take(6) {
        drop(party.try_acquire("s:1", &Cost::new().tokens(10).usd(Usd::default())).unwrap());
        store.flush_now().unwrap();
        clock.advance(YEAR);
    }
    parties.iter().for_each(|(_, store)| store.flush_now().unwrap());
    for (party, _) in &parties {
        assert_eq!(used(party, "s:1")[..2], [60, 6]);
    }
    // More entries than a compaction waits for, of another key.
    let (party, store) = &parties[0];
    for key in 0..2_500 {
        drop(
            party
                .try_acquire(&format!("s:other-{key}"), &Cost::new().tokens(1).usd(Usd::default()))
                .unwrap(),
        );
    }
    store.flush_now().unwrap();
    let (late, _store) = shared(&path, &clock);
    assert_eq!(used(&late, "s:1")[..2], [60, 6]);
}
