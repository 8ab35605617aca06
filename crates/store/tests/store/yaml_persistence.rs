//! A limiter with a store in a YAML file.

use std::path::Path;
use std::time::Duration;

use paceline_limiter::limiter::{Boot, ManualClock};
use paceline_limiter::{Cost, Limiter, Quota};
use paceline_store::{Persistence, StoreError, Yaml};

use super::yaml::file;

/// Longer than any test; the tests flush explicitly.
const NEVER: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);

fn limiter_with_store(
    path: &Path,
    clock: &ManualClock,
) -> (Limiter, Result<Persistence, StoreError>) {
    let quota = Quota::new().rpd(5).tpm(1_000).concurrency(8);
    let limiter = Limiter::builder().quota("k", quota).clock(clock.clone()).build().unwrap();
    let persistence = Persistence::start(&limiter, Yaml::new(path), NEVER);
    (limiter, persistence)
}

/// Returns the number of requests admitted before a refusal; each ends immediately.
fn admit(limiter: &Limiter) -> usize {
    std::iter::from_fn(|| limiter.try_acquire("k", &Cost::new()).ok()).count()
}

#[test]
fn exhausted_daily_limit_survives_restarts() {
    let (_folder, path) = file();
    let clock = ManualClock::new();
    for admitted in [5, 0, 0] {
        let (limiter, persistence) = limiter_with_store(&path, &clock);
        persistence.unwrap();
        assert_eq!(admit(&limiter), admitted);
        clock.advance(HOUR);
    }
    clock.advance(24 * HOUR);
    let (limiter, persistence) = limiter_with_store(&path, &clock);
    persistence.unwrap();
    assert_eq!(admit(&limiter), 5);
}

#[test]
fn release_after_flush_is_refunded_in_the_file() {
    let (_folder, path) = file();
    let clock = ManualClock::new();
    let (limiter, persistence) = limiter_with_store(&path, &clock);
    let persistence = persistence.unwrap();
    let permits: Vec<_> =
        (0..5).map(|_| limiter.try_acquire("k", &Cost::new().tokens(100)).unwrap()).collect();
    persistence.flush_now().unwrap();
    clock.advance(Duration::from_secs(20));
    permits.into_iter().take(2).for_each(|permit| permit.release());
    drop((limiter, persistence));
    let (limiter, persistence) = limiter_with_store(&path, &clock);
    persistence.unwrap();
    let used: Vec<_> = limiter.stats("k").limits.iter().map(|limit| limit.used).collect();
    assert_eq!(used[..2], [3, 300]);
}

#[test]
fn second_limiter_on_one_file_runs_without_store() {
    let (_folder, path) = file();
    let clock = ManualClock::new();
    let (first, persistence) = limiter_with_store(&path, &clock);
    persistence.unwrap();
    let (second, refused) = limiter_with_store(&path, &clock);
    assert!(refused.unwrap_err().to_string().contains("in use by process"));
    assert_eq!((admit(&first), admit(&second)), (5, 5));
}

#[test]
fn usage_after_suspend_counts_today_after_restart() {
    let (_folder, path) = file();
    let hour = 3_600_000_000_000;
    let clock = ManualClock::with_boot(Boot::new(7, Duration::from_nanos(hour)));
    let (slept, persistence) = limiter_with_store(&path, &clock);
    assert!(slept.try_acquire("k", &Cost::new()).is_ok());
    persistence.unwrap().flush_now().unwrap();
    // The limiter's clock resumes at the time of the suspend.
    clock.suspend(30 * HOUR);
    (0..2).for_each(|_| drop(slept.try_acquire("k", &Cost::new()).unwrap()));
    drop(slept);
    let clock = ManualClock::with_boot(Boot::new(7, Duration::from_nanos(hour)));
    clock.advance(30 * HOUR);
    let (fresh, _persistence) = limiter_with_store(&path, &clock);
    assert_eq!(admit(&fresh), 3, "of five, two are used today and one was used yesterday");
}
