//! Admission after a restart, which must equal admission without the restart.

use paceline_limiter::limiter::{Limiter, ManualClock, RateLimited, Refusal, RefusalKind};
use paceline_limiter::quota::{Algorithm, Limit, Margin};
use paceline_limiter::{Cost, Quota, Usage};
use paceline_store::{Persistence, Sqlite, Yaml};
use std::path::Path;
use std::time::Duration;

use super::sqlite::folder;

const NEVER: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);

/// Returns a limiter with this limit and a store in a file of this name.
fn limiter_with_store(
    folder: &Path,
    file: &str,
    limit: &Limit,
    clock: &ManualClock,
) -> (Limiter, Persistence) {
    let quota = Quota::new().limit(limit.clone());
    let builder = Limiter::builder().margin(Margin::NONE).quota("k", quota);
    let limiter = builder.clock(clock.clone()).build().unwrap();
    let path = folder.join(file);
    let persistence = match file {
        "state.db" => Persistence::start(&limiter, Sqlite::new(&path), NEVER),
        _ => Persistence::start(&limiter, Yaml::new(&path), NEVER),
    };
    (limiter, persistence.unwrap())
}

fn admit(limiter: &Limiter) -> usize {
    std::iter::from_fn(|| limiter.try_acquire("k", &Cost::new()).ok()).count()
}

fn requests(amount: u64, algorithm: Algorithm) -> Limit {
    let minute = paceline_limiter::quota::Window::MINUTE;
    let limit = Limit::new(paceline_limiter::quota::Dimension::Requests, amount, minute).unwrap();
    limit.with_algorithm(algorithm)
}

#[test]
fn limit_in_constant_use_stays_exhausted_after_restart() {
    for file in ["state.db", "state.yaml"] {
        for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow]
        {
            let (folder, _) = folder();
            let limit = requests(51, algorithm);
            let clock = ManualClock::new();
            let (limiter, persistence) = limiter_with_store(folder.path(), file, &limit, &clock);
            let mut admitted = 0;
            for second in 0..=20 * 60 + 50 {
                admitted += usize::from(limiter.try_acquire("k", &Cost::new()).is_ok());
                clock.advance(SECOND);
                if second % 10 == 0 {
                    persistence.flush_now().unwrap();
                }
            }
            assert!(admitted > 20 * 51, "{admitted}");
            admit(&limiter);
            drop(limiter);
            let (limiter, _persistence) = limiter_with_store(folder.path(), file, &limit, &clock);
            assert_eq!(admit(&limiter), 0, "{file} {algorithm:?}");
        }
    }
}

#[test]
fn fixed_window_ends_at_original_time_after_restart() {
    for file in ["state.db", "state.yaml"] {
        let (folder, _) = folder();
        let limit = requests(10, Algorithm::FixedWindow);
        let clock = ManualClock::new();
        let (limiter, persistence) = limiter_with_store(folder.path(), file, &limit, &clock);
        for second in 0..=3 * 60 {
            if second % 60 == 0 || second % 60 == 50 {
                drop(limiter.try_acquire("k", &Cost::new()).unwrap());
                persistence.flush_now().unwrap();
            }
            clock.advance(SECOND);
        }
        assert_eq!(admit(&limiter), 9);
        clock.advance(30 * SECOND);
        drop(limiter);
        let (limiter, _persistence) = limiter_with_store(folder.path(), file, &limit, &clock);
        assert_eq!(admit(&limiter), 0, "{file}");
        clock.advance(25 * SECOND);
        assert_eq!(admit(&limiter), 0, "{file}");
        clock.advance(4 * SECOND);
        assert_eq!(admit(&limiter), 10, "{file}");
    }
}

#[test]
fn debt_survives_restarts() {
    for file in ["state.db", "state.yaml"] {
        let (folder, _) = folder();
        let limit = requests(10, Algorithm::TokenBucket);
        let clock = ManualClock::new();
        let (mut limiter, mut persistence) =
            limiter_with_store(folder.path(), file, &limit, &clock);
        (0..50).for_each(|_| limiter.record("k", &Usage::default()));
        for _ in 0..3 {
            drop((limiter, persistence));
            clock.advance(70 * SECOND);
            (limiter, persistence) = limiter_with_store(folder.path(), file, &limit, &clock);
            assert_eq!(admit(&limiter), 0, "{file}");
        }
        clock.advance(40 * SECOND);
        assert_eq!(admit(&limiter), 1, "{file}: 50 less 41 refilled leave 1 of 10");
    }
}

#[test]
fn usage_after_a_reset_counts_though_reset_arrives_later() {
    let (folder, _) = folder();
    let limit = requests(5, Algorithm::SlidingWindow);
    let clock = ManualClock::new();
    let (one, persistence_one) = limiter_with_store(folder.path(), "state.db", &limit, &clock);
    let (two, persistence_two) = limiter_with_store(folder.path(), "state.db", &limit, &clock);
    assert_eq!(admit(&two), 5);
    persistence_two.flush_now().unwrap();
    clock.advance(SECOND);
    one.reset("k");
    // The other limiter receives the reset later: its limit is exhausted, and it records more.
    clock.advance(SECOND);
    (0..3).for_each(|_| two.record("k", &Usage::default()));
    persistence_two.flush_now().unwrap();
    persistence_one.flush_now().unwrap();
    persistence_two.flush_now().unwrap();
    let (three, _three_kept) = limiter_with_store(folder.path(), "state.db", &limit, &clock);
    assert_eq!(three.stats("k").limits[0].used, 3);
    assert_eq!(two.stats("k").limits[0].used, 3);
    assert_eq!(one.stats("k").limits[0].used, 3);
}

#[test]
fn external_reset_ends_cool_down_of_running_limiter() {
    let (folder, path) = folder();
    let clock = ManualClock::new();
    let limit = requests(5, Algorithm::SlidingWindow);
    let (limiter, persistence) = limiter_with_store(folder.path(), "state.db", &limit, &clock);
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(20 * SECOND)));
    persistence.flush_now().unwrap();
    assert_eq!(admit(&limiter), 0);
    clock.advance(SECOND);
    let now = paceline_limiter::limiter::Clock::now(&clock);
    Sqlite::reset(&path, Some("k"), now, None).unwrap();
    persistence.flush_now().unwrap();
    assert_eq!(limiter.stats("k").cooling_until, None);
    assert!(admit(&limiter) > 0);
}

#[test]
fn reason_of_a_pause_is_kept_over_a_restart_and_known_to_others() {
    for file in ["state.db", "state.yaml"] {
        let (folder, _) = folder();
        let (clock, limit) = (ManualClock::new(), requests(5, Algorithm::SlidingWindow));
        let start = || limiter_with_store(folder.path(), file, &limit, &clock);
        let (one, kept) = start();
        let beside = (file == "state.db").then(start);
        let mut refusal = Refusal::new(RefusalKind::Window);
        refusal.delay = Some(7_200 * SECOND);
        one.feedback().rate_limited("k", &RateLimited::of(refusal));
        assert_eq!(one.stats("k").cooling_kind, Some(RefusalKind::Window));
        kept.flush_now().unwrap();
        if let Some((beside, kept)) = beside {
            kept.flush_now().unwrap();
            assert_eq!(beside.stats("k").cooling_kind, Some(RefusalKind::Window));
        }
        drop((one, kept));
        let (again, _kept) = start();
        assert_eq!(again.stats("k").cooling_kind, Some(RefusalKind::Window), "{file}");
    }
}
