//! Keys that are retired by a quota change while requests and gates wait for them and others arrive.

use paceline_limiter::limiter::{AcquireError, KeyBudget, Limiter};
use paceline_limiter::quota::{Cost, Dimension, Quota};

use super::{
    Thread, assert_unused, block_on, builder, check, level, limiter, requests, run_threads,
    thread_of, wait_open,
};

/// Returns a limiter for all keys that begin with `m-`.
fn limiter_of_pattern(quota: &Quota) -> Limiter {
    builder().quota("m-*", quota.clone()).build().unwrap()
}

fn acquire(limiter: &Limiter, key: &'static str) -> Thread {
    thread_of(limiter, move |limiter| {
        drop(block_on(limiter.acquire(key, &Cost::new())).unwrap());
    })
}

/// Returns a thread that acquires, unless the key has no quota.
fn acquire_if_known(limiter: &Limiter, key: &'static str) -> Thread {
    thread_of(limiter, move |limiter| match block_on(limiter.acquire(key, &Cost::new())) {
        Ok(permit) => drop(permit),
        Err(AcquireError::Removed { .. }) => {}
        Err(error) => panic!("{error}"),
    })
}

fn gate(limiter: &Limiter, key: &'static str) -> Thread {
    let gate = limiter.gate(&[key]).unwrap();
    Box::new(move || wait_open(gate))
}

fn set(limiter: &Limiter, name: &'static str, quota: &Quota) -> Thread {
    let quota = quota.clone();
    thread_of(limiter, move |limiter| limiter.quotas().set(name, &quota).unwrap())
}

/// Asserts that the keys follow the quota that the limiter has for them.
fn assert_follows(limiter: &Limiter, name: &str, keys: [&str; 2]) {
    let quota = limiter.quotas().get(name).map(|named| named.quota).unwrap_or_default();
    for key in keys {
        assert_eq!(limiter.quotas().of(key).limits(), quota.limits(), "{key}");
    }
}

#[test]
fn waiters_of_key_moved_to_shared_quota_end_without_release() {
    check(|| {
        let one = Quota::new().concurrency(1);
        let limiter = limiter_of_pattern(&one);
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        let handle = limiter.key("m-1").unwrap();
        run_threads([
            acquire(&limiter, "m-1"),
            acquire(&limiter, "m-2"),
            gate(&limiter, "m-1"),
            Box::new(move || drop(block_on(handle.acquire(&Cost::new())).unwrap())),
            set(&limiter, "m-*", &one.shared()),
        ]);
        drop(held);
        assert_unused(&limiter, "m-1");
        let _held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        assert!(limiter.try_acquire("m-2", &Cost::new()).is_err(), "both keys share one limit");
    });
}

#[test]
fn waiters_of_key_moved_while_permit_ends_all_end() {
    check(|| {
        let one = Quota::new().concurrency(1);
        let limiter = limiter_of_pattern(&one);
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        let share = thread_of(&limiter, move |limiter| {
            limiter.quotas().set("m-*", &one.shared()).unwrap();
            limiter.state().prune();
        });
        run_threads([
            acquire(&limiter, "m-1"),
            acquire(&limiter, "m-1"),
            share,
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "m-1");
        let _held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        assert!(limiter.try_acquire("m-2", &Cost::new()).is_err(), "both keys share one limit");
    });
}

#[test]
fn waiters_of_shared_quota_made_separate_all_end() {
    check(|| {
        let one = Quota::new().concurrency(1);
        let limiter = limiter_of_pattern(&one.clone().shared());
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        run_threads([
            acquire(&limiter, "m-1"),
            acquire(&limiter, "m-2"),
            gate(&limiter, "m-2"),
            set(&limiter, "m-*", &one),
            Box::new(move || drop(held)),
        ]);
        let _held = ["m-1", "m-2"].map(|key| {
            assert_unused(&limiter, key);
            limiter.try_acquire(key, &Cost::new()).expect("each key has a limit of its own")
        });
    });
}

#[test]
fn waiters_of_quota_shared_and_removed_end_without_release() {
    check(|| {
        let one = Quota::new().concurrency(1);
        let limiter = limiter_of_pattern(&one);
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        run_threads([
            acquire_if_known(&limiter, "m-1"),
            acquire_if_known(&limiter, "m-1"),
            gate(&limiter, "m-1"),
            set(&limiter, "m-*", &one.shared()),
            thread_of(&limiter, |limiter| assert!(limiter.quotas().remove("m-*"))),
        ]);
        drop(held);
        ["m-1", "m-2"].iter().for_each(|key| assert_unused(&limiter, key));
        assert_follows(&limiter, "m-*", ["m-1", "m-2"]);
    });
}

#[test]
fn quota_set_and_removed_concurrently_last_change_applies() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        run_threads([
            set(&limiter, "k", &Quota::new().concurrency(2)),
            set(&limiter, "k", &Quota::new().concurrency(3).rpm(9)),
            thread_of(&limiter, |limiter| assert!(limiter.quotas().remove("k"))),
            acquire_if_known(&limiter, "k"),
        ]);
        drop(held);
        assert_unused(&limiter, "k");
        assert_follows(&limiter, "k", ["k", "k"]);
    });
}

#[test]
fn pattern_shared_and_separated_concurrently_last_applies() {
    check(|| {
        let limiter = limiter_of_pattern(&Quota::new().rpm(5));
        let take = |key: &'static str| {
            thread_of(&limiter, move |limiter| {
                drop(limiter.try_acquire(key, &Cost::new()).unwrap());
            })
        };
        drop(limiter.try_acquire("m-1", &Cost::new()).unwrap());
        run_threads([
            set(&limiter, "m-*", &Quota::new().rpm(6).shared()),
            set(&limiter, "m-*", &Quota::new().rpm(7)),
            take("m-1"),
            take("m-2"),
        ]);
        assert_follows(&limiter, "m-*", ["m-1", "m-2"]);
        let before = requests(&limiter, "m-2");
        drop(limiter.try_acquire("m-1", &Cost::new()).unwrap());
        let is_shared = limiter.quotas().of("m-1") == Quota::new().rpm(6).shared();
        assert_eq!(requests(&limiter, "m-2"), before + u64::from(is_shared));
    });
}

#[test]
fn several_keys_moved_to_one_shared_quota_are_locked_once() {
    check(|| {
        let limiter = limiter_of_pattern(&Quota::new().tpm(100).concurrency(1));
        let held = limiter.try_acquire("m-2", &Cost::new().tokens(10)).unwrap();
        let acquire_both = |keys: [&'static str; 2]| {
            thread_of(&limiter, move |limiter| {
                let cost = Cost::new().tokens(10);
                drop(block_on(limiter.acquire_all(&keys, &cost)).unwrap());
            })
        };
        run_threads([
            acquire_both(["m-1", "m-2"]),
            acquire_both(["m-2", "m-1"]),
            set(&limiter, "m-*", &Quota::new().tpm(100).concurrency(1).shared()),
        ]);
        drop(held);
        assert_unused(&limiter, "m-1");
        // A request that counted to the key which moved last, and to the shared one, counts to both: 50 at most.
        let used = level(&limiter.stats("m-1"), &Dimension::Tokens).0;
        assert!(used <= 50 && used.is_multiple_of(10), "{used}");
    });
}

#[test]
fn keys_moved_to_shared_quota_return_budget_once() {
    check(|| {
        let quota = Quota::new().rpm(9);
        let limiter = builder().quota("*", quota.clone()).build().unwrap();
        let budgeted = limiter.with_key_budget(KeyBudget::new(2));
        let _permits = ["m-1", "m-2"].map(|key| budgeted.try_acquire(key, &Cost::new()).unwrap());
        let take_both = thread_of(&budgeted, |limiter| {
            let both = limiter.acquire_all(&["m-2", "m-1"], &Cost::new()).try_now();
            drop(both.unwrap());
        });
        let take = thread_of(&budgeted, |limiter| {
            drop(limiter.try_acquire("m-1", &Cost::new()).unwrap());
        });
        run_threads([take_both, take, set(&limiter, "m-*", &quota.shared())]);
        let made = ["a", "b", "c"].map(|key| budgeted.try_acquire(key, &Cost::new()).is_ok());
        assert_eq!(made, [true, true, false]);
    });
}
