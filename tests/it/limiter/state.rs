use std::sync::Arc;
use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Cost, Quota, Usage};

use super::{builder, tokens};

fn limiter(clock: &ManualClock, algorithm: Algorithm) -> Limiter {
    let quota = Quota::new().rpm(100).tpm(1_000).with_algorithm(algorithm);
    builder().quota("*", quota).clock(clock.clone()).build().unwrap()
}

#[test]
fn snapshot_restores_usage_and_charges_held_amounts() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let clock = ManualClock::new();
        let before = limiter(&clock, algorithm);
        before.try_acquire("a", &tokens(300)).unwrap().settle(&tokens(300));
        let _in_flight = before.try_acquire("a", &tokens(200)).unwrap();
        let snapshot = before.state().snapshot();

        let after = limiter(&clock, algorithm);
        after.state().absorb(&snapshot);
        let used: Vec<_> = after.stats("a").limits.iter().map(|l| (l.used, l.held)).collect();
        assert_eq!(used, [(2, 0), (500, 0)], "{algorithm:?}");
        clock.advance(Duration::from_secs(60));
        assert_eq!(after.stats("a").limits[1].used, 0, "{algorithm:?}");
    }
}

#[test]
fn snapshot_is_sorted_and_omits_fresh_keys() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock, Algorithm::TokenBucket);
    for key in ["b", "a", "c"] {
        limiter.try_acquire(key, &tokens(1)).unwrap().settle(&tokens(1));
    }
    limiter.decide("fresh", &Cost::new());
    let keys: Vec<_> = limiter.state().snapshot().into_iter().map(|k| k.key).collect();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[test]
fn twenty_threads_count_exactly() {
    let clock = ManualClock::new();
    let limiter = Arc::new(limiter(&clock, Algorithm::TokenBucket));
    limiter
        .quotas()
        .set("k", &Quota::new().tpm(1_000_000).with_algorithm(Algorithm::TokenBucket))
        .unwrap();
    let threads: Vec<_> = (0..20)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            std::thread::spawn(move || {
                let granted = (0..50_000).filter(|_| match limiter.try_acquire("k", &tokens(3)) {
                    Ok(permit) => {
                        permit.settle(&tokens(2));
                        true
                    }
                    Err(_) => false,
                });
                granted.count()
            })
        })
        .collect();
    let granted: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let limit = &limiter.stats("k").limits[0];
    assert_eq!((limit.used, limit.held), (2 * granted as u64, 0));
    assert!(limit.used <= 1_000_000 && limit.used > 999_900, "{limit:?}");
}

#[test]
fn limits_learned_concurrently_count_usage_once() {
    let mut headers = http::HeaderMap::new();
    headers.insert("x-ratelimit-limit-tokens", "100000".parse().unwrap());
    headers.insert("x-ratelimit-remaining-tokens", "90000".parse().unwrap());
    for _ in 0..1_000 {
        let limiter = builder().provider(OPENAI).clock(ManualClock::new()).build().unwrap();
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let readings = OPENAI.limits(&headers);
                    start.wait();
                    limiter.feedback().learn("k", &readings);
                });
            }
        });
        assert_eq!(limiter.stats("k").limits[0].used, 10_000);
    }
}

#[test]
fn debug_output_names_no_other_key() {
    let limiter = builder().build().unwrap();
    (0..1_000).for_each(|i| limiter.record(&format!("sk-secret-{i}"), &Usage::default()));
    let handle = limiter.key("mine").unwrap();
    assert_eq!(format!("{handle:?}"), "KeyHandle(\"mine\")");
    assert!(!format!("{limiter:?}").contains("sk-secret"));
}
