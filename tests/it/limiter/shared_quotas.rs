//! Quotas that keys share, or no longer share, while the limiter runs, and totals across changes.

use paceline::limiter::{Limiter, ManualClock};
use paceline::quota::{Algorithm, Cost, Quota};

use super::{S, builder};

fn use_up(limiter: &Limiter, key: &str, amount: u64) {
    let cost = Cost::new().requests(amount);
    limiter.try_acquire(key, &cost).unwrap().settle(&cost);
}

fn total_left(limiter: &Limiter, key: &str) -> u64 {
    limiter.stats(key).limits.iter().map(|limit| limit.available).min().unwrap_or(u64::MAX)
}

#[test]
fn totals_survive_changes_of_the_quota() {
    let clock = ManualClock::new();
    let total = |amount| Quota::new().requests_total(amount);
    let mut failures = Vec::new();
    let mut check = |name: &str, quota: &dyn Fn(&Limiter), key: &str, expected: u64| {
        let limiter = builder().clock(clock.clone()).quota("s:*", total(100)).build().unwrap();
        use_up(&limiter, "s:1", 60);
        quota(&limiter);
        let left = total_left(&limiter, key);
        if left != expected {
            failures.push(format!("{name}: {left}, not {expected}"));
        }
    };
    let set = |name: &'static str, quota: Quota| {
        move |limiter: &Limiter| limiter.quotas().set(name, &quota).unwrap()
    };
    check("same", &set("s:*", total(100)), "s:1", 40);
    check("raised", &set("s:*", total(200)), "s:1", 140);
    check("lowered", &set("s:*", total(50)), "s:1", 0);
    check("of the key itself", &set("s:1", total(100)), "s:1", 40);
    check("with a rate", &set("s:*", total(100).rpm(1_000)), "s:1", 40);
    let back = |limiter: &Limiter| {
        limiter.quotas().set("s:1", &total(100)).unwrap();
        limiter.quotas().remove("s:1");
    };
    check("of the key and back", &back, "s:1", 40);
    let glob = |limiter: &Limiter| {
        limiter.quotas().set("s:1*", &total(100)).unwrap();
        limiter.quotas().remove("s:*");
    };
    check("of another glob", &glob, "s:1", 40);
    check("shared", &set("s:*", total(100).shared()), "s:1", 40);
    let day = |limiter: &Limiter| {
        limiter.quotas().set("s:*", &Quota::new().rpd(100)).unwrap();
        limiter.quotas().set("s:*", &total(100)).unwrap();
    };
    check("to a day and back", &day, "s:1", 40);
    let both = |limiter: &Limiter| {
        limiter.quotas().set("s:*", &total(100).rpd(100)).unwrap();
        limiter.quotas().set("s:*", &total(100)).unwrap();
    };
    check("a day added and removed", &both, "s:1", 40);
    let restarted = |limiter: &Limiter| {
        let snapshot = limiter.state().snapshot();
        limiter.reset_all();
        limiter.state().absorb(&snapshot);
    };
    check("restored", &restarted, "s:1", 40);
    check("reset", &|limiter: &Limiter| limiter.reset("s:1"), "s:1", 100);
    check("reset of another", &|limiter: &Limiter| limiter.reset("s:2"), "s:1", 40);
    check("weight", &set("s:*", total(100).with_weight(3)), "s:1", 40);
    check("max_wait", &set("s:*", total(100).reject()), "s:1", 40);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn sharing_a_quota_at_run_time_admits_nothing_once_more() {
    let mut failures = Vec::new();
    for algorithm in Algorithm::ALL {
        for is_shared_first in [true, false] {
            let clock = ManualClock::new();
            let quota = Quota::new().rpm(60).with_algorithm(algorithm);
            let quotas = match is_shared_first {
                true => [quota.clone().shared(), quota],
                false => [quota.clone(), quota.shared()],
            };
            let limiter = builder().clock(clock.clone()).quota("m-*", quotas[0].clone());
            let limiter = limiter.build().unwrap();
            clock.advance(31 * S);
            use_up(&limiter, "m-1", 60);
            limiter.quotas().set("m-*", &quotas[1]).unwrap();
            if limiter.try_acquire("m-1", &Cost::new()).is_ok() {
                failures.push(format!("{algorithm:?}, shared first: {is_shared_first}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn shared_quota_counts_the_sum_of_its_keys() {
    for algorithm in Algorithm::ALL {
        let clock = ManualClock::new();
        let quota = Quota::new().rpm(60).with_algorithm(algorithm);
        let limiter = builder().clock(clock.clone()).quota("m-*", quota.clone()).build().unwrap();
        clock.advance(31 * S);
        use_up(&limiter, "m-1", 20);
        use_up(&limiter, "m-2", 30);
        limiter.quotas().set("m-*", &quota.shared()).unwrap();
        assert_eq!(total_left(&limiter, "m-3"), 10, "{algorithm:?}");
        clock.advance(120 * S);
        assert_eq!(total_left(&limiter, "m-3"), 60, "{algorithm:?}");
    }
}

#[test]
fn quota_shared_no_longer_counts_for_each_key_until_reset() {
    let total = Quota::new().requests_total(100);
    let clock = ManualClock::new();
    let limiter = builder().clock(clock).quota("s:*", total.clone().shared()).build().unwrap();
    use_up(&limiter, "s:1", 60);
    limiter.quotas().set("s:*", &total).unwrap();
    assert_eq!((total_left(&limiter, "s:1"), total_left(&limiter, "s:2")), (40, 40));
    use_up(&limiter, "s:1", 40);
    assert_eq!((total_left(&limiter, "s:1"), total_left(&limiter, "s:2")), (0, 40));
    limiter.reset_all();
    assert_eq!((total_left(&limiter, "s:1"), total_left(&limiter, "s:3")), (100, 100));
}

#[test]
fn places_in_flight_of_a_shared_quota_all_come_back() {
    let quota = Quota::new().concurrency(2);
    let limiter = builder().quota("m-*", quota.clone()).build().unwrap();
    let permit = limiter.try_acquire("m-1", &Cost::new()).unwrap();
    limiter.quotas().set("m-*", &quota.shared()).unwrap();
    drop(permit);
    assert_eq!(total_left(&limiter, "m-1"), 2);
}
