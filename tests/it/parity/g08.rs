//! Idle keys are pruned; all other keys are kept.

use std::time::Duration;

use paceline::limiter::{Code, Limiter, ManualClock};
use paceline::quota::{Cost, Quota, Usage};

use super::rig::{admitted, buckets, builder, tokens, used};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a limiter in which each key may send one request and 100 tokens per minute.
fn limiter(max_keys: usize) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let each = buckets(Quota::new().rpm(1).tpm(100));
    let limiter = builder().quota("*", each).max_keys(max_keys).clock(clock.clone());
    (limiter.build().unwrap(), clock)
}

fn send_each(limiter: &Limiter, names: std::ops::Range<usize>) -> usize {
    names.map(|i| admitted(limiter, &format!("user-{i}"), &Cost::new(), 1)).sum()
}

#[test]
fn g08_prune_drops_keys_without_usage() {
    let (limiter, clock) = limiter(10_000);
    assert_eq!(send_each(&limiter, 0..500), 500);
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (0, 500));
    clock.advance(MINUTE / 2);
    assert_eq!(send_each(&limiter, 500..600), 100);
    clock.advance(MINUTE / 2);
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (500, 100));
    clock.advance(MINUTE);
    assert_eq!((limiter.state().prune(), limiter.state().keys().len()), (100, 0));
}

#[test]
fn g08_idle_keys_are_pruned_as_new_keys_arrive() {
    let (limiter, clock) = limiter(1_000_000);
    for minute in 0..100 {
        assert_eq!(send_each(&limiter, minute * 500..(minute + 1) * 500), 500);
        clock.advance(MINUTE);
        // A shard is pruned when its keys have doubled. Keys are distributed to shards at random, so the
        // count may exceed twice the number of keys in use: 1,314 were seen.
        assert!(
            limiter.state().keys().len() <= 1_500,
            "{} in minute {minute}",
            limiter.state().keys().len()
        );
    }
}

#[test]
fn g08_flood_of_keys_stays_within_bound_without_eviction() {
    let (limiter, clock) = limiter(100);
    assert_eq!(send_each(&limiter, 0..10_000), 100);
    assert_eq!(limiter.state().keys().len(), 100);
    let refused = limiter.try_acquire("user-9999", &Cost::new()).unwrap_err();
    assert_eq!(refused.code, Code::TooManyKeys);
    // The known keys have used their quota, and their usage is kept.
    assert_eq!(send_each(&limiter, 0..100), 0);
    assert!((0..100).all(|i| used(&limiter, &format!("user-{i}"))[0] == 1));
    // After the refill, new keys are accepted.
    clock.advance(MINUTE);
    assert_eq!(send_each(&limiter, 5_000..5_100), 100);
    assert_eq!(limiter.state().keys().len(), 100);
}

#[test]
fn g08_debt_is_kept_until_paid() {
    let (limiter, clock) = limiter(10);
    // Uses the quota of ten minutes.
    limiter.record("debtor", &Usage { input: 1_000, ..Usage::default() });
    for minute in 1..10 {
        clock.advance(MINUTE);
        limiter.state().prune();
        send_each(&limiter, minute * 1_000..minute * 1_000 + 50);
        assert_eq!(used(&limiter, "debtor")[1], 1_000 - 100 * minute as u64);
    }
    clock.advance(MINUTE);
    limiter.state().prune();
    assert!(limiter.state().keys().is_empty());
}

#[test]
fn g08_keys_in_flight_or_cooling_down_are_kept() {
    let (limiter, clock) = limiter(10);
    let permit = limiter.try_acquire("in-flight", &tokens(60)).unwrap();
    let cooling = paceline::limiter::RateLimited::new(Some(5 * MINUTE));
    limiter.feedback().rate_limited("cooling", &cooling);
    clock.advance(2 * MINUTE);
    assert_eq!(limiter.state().prune(), 0);
    permit.settle(&tokens(90));
    assert_eq!(used(&limiter, "in-flight")[1], 90);
    assert_eq!(limiter.try_acquire("cooling", &Cost::new()).unwrap_err().code, Code::CoolingDown);
    clock.advance(3 * MINUTE);
    assert_eq!(limiter.state().prune(), 2);
}
