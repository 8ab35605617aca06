//! Idle keys that are dropped, by a prune, by the sweep of a new key or at `max_keys`, while requests use
//! them by name, through handles and with permits.

use paceline_limiter::Permit;
use paceline_limiter::limiter::{Builder, Code, KeyBudget, Limiter};
use paceline_limiter::quota::{Cost, Dimension, Quota};
use shuttle::thread;

use super::{
    Thread, assert_unused, block_on, builder, check, level, requests, run_threads, thread_of,
};

/// Returns a builder with this quota for every key.
fn builder_of_all(quota: Quota) -> Builder {
    builder().quota("*", quota)
}

fn take(limiter: &Limiter, key: &'static str) -> Thread {
    thread_of(limiter, move |limiter| drop(limiter.try_acquire(key, &Cost::new()).unwrap()))
}

/// Returns a thread that creates keys, each of which sweeps a few others.
fn prune_and_make_keys(limiter: &Limiter) -> Thread {
    thread_of(limiter, |limiter| {
        limiter.state().prune();
        make_keys(limiter);
        limiter.state().prune();
    })
}

fn make_keys(limiter: &Limiter) {
    for key in NEW {
        drop(limiter.try_acquire(key, &Cost::new()).unwrap());
    }
}

fn assert_new_keys_used_once(limiter: &Limiter) {
    NEW.iter().for_each(|key| assert_eq!(requests(limiter, key), 1, "{key}"));
}

/// Returns which threads' requests were admitted; the others found the table full.
fn granted<const N: usize>(threads: [thread::JoinHandle<Option<Code>>; N]) -> [bool; N] {
    threads.map(|thread| match thread.join().unwrap() {
        None => true,
        Some(Code::TooManyKeys) => false,
        Some(code) => panic!("{code:?}"),
    })
}

/// Asserts that the limiter accepts exactly `keys` more keys.
fn assert_keys_left(limiter: &Limiter, keys: usize) {
    for (number, key) in NEW.iter().enumerate() {
        let granted = limiter.try_acquire(key, &Cost::new());
        assert_eq!(granted.is_ok(), number < keys, "{granted:?}");
    }
}

#[test]
fn permit_of_reset_key_released_changes_no_other_key() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).build().unwrap();
        let permits = ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new()).unwrap());
        let replace = thread_of(&limiter, |limiter| {
            limiter.reset_all();
            limiter.state().prune();
            make_keys(limiter);
        });
        let end = move || permits.into_iter().for_each(Permit::release);
        run_threads([replace, Box::new(end)]);
        assert_new_keys_used_once(&limiter);
    });
}

#[test]
fn key_used_while_pruned_keeps_usage() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).build().unwrap();
        limiter.try_acquire("a", &Cost::new()).unwrap().release();
        let by_handle = thread_of(&limiter, |limiter| {
            let handle = limiter.key("a").unwrap();
            drop(handle.try_acquire(&Cost::new()).unwrap());
        });
        run_threads([
            take(&limiter, "a"),
            take(&limiter, "a"),
            by_handle,
            prune_and_make_keys(&limiter),
        ]);
        assert_eq!(requests(&limiter, "a"), 3);
        assert_new_keys_used_once(&limiter);
    });
}

#[test]
fn idle_key_used_while_pruned_keeps_usage() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).build().unwrap();
        limiter.try_acquire("a", &Cost::new()).unwrap().release();
        let prune = thread_of(&limiter, |limiter| {
            limiter.state().prune();
        });
        let by_handle = thread_of(&limiter, |limiter| {
            let handle = limiter.key("a").unwrap();
            drop(handle.try_acquire(&Cost::new()).unwrap());
        });
        run_threads([prune, take(&limiter, "a"), by_handle]);
        assert_eq!(requests(&limiter, "a"), 2);
    });
}

#[test]
fn handle_cloned_while_key_is_pruned_stays_valid() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).build().unwrap();
        let handle = limiter.key("a").unwrap();
        let act = move || {
            let other = handle.clone();
            drop(handle);
            assert_eq!(other.key(), "a");
            drop(other.try_acquire(&Cost::new()).unwrap());
            assert_eq!(level(&other.stats(), &Dimension::Requests), (1, 0));
        };
        run_threads([Box::new(act), prune_and_make_keys(&limiter)]);
        assert_eq!(requests(&limiter, "a"), 1);
    });
}

#[test]
fn key_with_waiters_pruned_is_kept() {
    check(|| {
        let limiter = builder_of_all(Quota::new().concurrency(1).rpm(9)).build().unwrap();
        let held = limiter.try_acquire("a", &Cost::new()).unwrap();
        let wait = |keys: &'static [&'static str]| {
            thread_of(&limiter, move |limiter| {
                drop(block_on(limiter.acquire_all(keys, &Cost::new())).unwrap());
            })
        };
        run_threads([
            wait(&["b", "a"]),
            wait(&["a"]),
            prune_and_make_keys(&limiter),
            Box::new(move || held.release()),
        ]);
        assert_eq!((requests(&limiter, "a"), requests(&limiter, "b")), (2, 1));
        ["a", "b"].iter().for_each(|key| assert_unused(&limiter, key));
        assert_new_keys_used_once(&limiter);
        limiter.reset_all();
        assert_eq!(limiter.state().prune(), NEW.len() + 2, "keys without waiters are dropped");
    });
}

#[test]
fn keys_up_to_max_keys_made_concurrently_are_admitted() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).max_keys(2).build().unwrap();
        run_threads(["a", "b", "a", "b"].map(|key| take(&limiter, key)));
        assert_eq!((requests(&limiter, "a"), requests(&limiter, "b")), (2, 2));
        assert_keys_left(&limiter, 0);
        limiter.reset_all();
        assert_eq!(limiter.state().prune(), 2);
        assert_keys_left(&limiter, 2);
    });
}

#[test]
fn keys_made_and_pruned_concurrently_count_is_exact() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).max_keys(2).build().unwrap();
        let make_and_release = |key: &'static str| {
            let limiter = limiter.clone();
            thread::spawn(move || match limiter.try_acquire(key, &Cost::new()) {
                Ok(permit) => {
                    permit.release();
                    None
                }
                Err(refused) => Some(refused.code),
            })
        };
        let threads = ["a", "b", "c", "a"].map(make_and_release);
        let mut pruned = limiter.state().prune();
        granted(threads);
        assert!(limiter.state().keys().len() <= 2);
        pruned += limiter.state().prune();
        assert!(pruned <= 4 && limiter.state().keys().is_empty());
        assert_keys_left(&limiter, 2);
    });
}

#[test]
fn keys_of_budget_made_and_pruned_concurrently_count_is_exact() {
    check(|| {
        let builder = builder_of_all(Quota::new().rpm(5)).quota("gold", Quota::new().rpm(5));
        let limiter = builder.max_keys(2).build().unwrap();
        let budgeted = limiter.with_key_budget(KeyBudget::new(1));
        let make_and_release = |limiter: &Limiter, key: &'static str| {
            thread_of(limiter, move |limiter| match limiter.try_acquire(key, &Cost::new()) {
                Ok(permit) => permit.release(),
                Err(refused) => assert_eq!(refused.code, Code::TooManyKeys),
            })
        };
        let prune = thread_of(&limiter, |limiter| {
            limiter.state().prune();
        });
        run_threads([
            make_and_release(&budgeted, "a"),
            make_and_release(&budgeted, "b"),
            take(&budgeted, "gold"),
            make_and_release(&limiter, "c"),
            prune,
        ]);
        limiter.state().prune();
        assert_eq!(limiter.state().keys(), ["gold"]);
        assert_keys_left(&budgeted, 1);
    });
}

#[test]
fn budget_of_one_key_used_by_two_keys_admits_one() {
    // Some of these keys are in the same shard as the first, and some are not.
    for key in [NEW[1], NEW[2], NEW[3]] {
        check(move || {
            let limiter = builder_of_all(Quota::new().rpm(5)).build().unwrap();
            let budgeted = limiter.with_key_budget(KeyBudget::new(1));
            let made = granted([NEW[0], key].map(|key| {
                let limiter = budgeted.clone();
                thread::spawn(move || limiter.try_acquire(key, &Cost::new()).err().map(|r| r.code))
            }));
            assert!(made == [true, false] || made == [false, true], "{made:?}");
        });
    }
}

#[test]
fn idle_key_at_max_keys_is_replaced_while_pruned() {
    // Some of these keys are in the same shard as the idle key.
    for key in NEW {
        check(move || {
            let limiter = builder_of_all(Quota::new().rpm(5)).max_keys(1).build().unwrap();
            limiter.try_acquire("a", &Cost::new()).unwrap().release();
            let prune = thread_of(&limiter, |limiter| assert!(limiter.state().prune() <= 2));
            run_threads([prune, take(&limiter, key)]);
            assert_eq!(requests(&limiter, key), 1);
            let several = limiter.acquire_all(&[key, "c"], &Cost::new()).try_now();
            assert_eq!(several.unwrap_err().code, Code::TooManyKeys);
        });
    }
}

#[test]
fn idle_keys_with_permit_and_handle_stay_at_max_keys() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).max_keys(2).build().unwrap();
        let _permit = limiter.try_acquire("a", &Cost::new()).unwrap();
        let handle = limiter.key("b").unwrap();
        limiter.reset_all();
        let act = move || {
            drop(handle.clone());
            drop(handle.try_acquire(&Cost::new()).unwrap());
            // Kept until the keys have been swept.
            handle
        };
        let act = thread::spawn(act);
        let refused = limiter.try_acquire("w", &Cost::new()).unwrap_err();
        assert_eq!(refused.code, Code::TooManyKeys);
        let _handle = act.join().unwrap();
        assert_eq!(requests(&limiter, "b"), 1);
        assert_eq!(limiter.state().keys(), ["a", "b"]);
    });
}

#[test]
fn several_new_keys_at_max_keys_are_refused_or_granted() {
    check(|| {
        let limiter = builder_of_all(Quota::new().rpm(5)).max_keys(2).build().unwrap();
        let acquire = |keys: &'static [&'static str]| {
            thread_of(&limiter, move |limiter| {
                let result = limiter.acquire_all(keys, &Cost::new()).try_now();
                if let Err(refused) = result {
                    assert_eq!(refused.code, Code::TooManyKeys);
                } else {
                    assert!(keys.len() <= 2);
                }
            })
        };
        run_threads([acquire(&["a", "b", "c"]), acquire(&["w", "a"])]);
    });
}

#[test]
fn keys_waited_for_at_max_keys_all_end() {
    check(|| {
        let builder = builder_of_all(Quota::new().rpm(9).concurrency(1));
        let limiter = builder.max_keys(1).build().unwrap();
        let act = |key: &'static str| {
            thread_of(&limiter, move |limiter| match block_on(limiter.acquire(key, &Cost::new())) {
                Ok(permit) => permit.release(),
                Err(error) => {
                    let code = error.refused().map(|refused| refused.code);
                    assert_eq!(code, Some(Code::TooManyKeys), "{error}");
                }
            })
        };
        run_threads([act("a"), act("a"), act("w"), act("x")]);
        limiter.state().prune();
        assert!(limiter.state().keys().is_empty());
        assert_keys_left(&limiter, 1);
    });
}

const NEW: [&str; 4] = ["w", "x", "y", "z"];
