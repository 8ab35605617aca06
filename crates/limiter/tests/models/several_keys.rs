//! Requests under several keys, listed in different orders.

use std::sync::Arc;

use paceline_limiter::limiter::{Limiter, Permit};
use paceline_limiter::quota::{Cost, Dimension, Quota};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use super::{
    Thread, assert_unused, block_on, builder, check, level, poll_once, run_threads, thread_of,
    tokens,
};

/// Flags of the keys that a permit holds; each key allows one permit at a time.
#[derive(Debug, Clone, Default)]
struct Held(Arc<[AtomicBool; KEYS.len()]>);

impl Held {
    /// Marks the keys as held, and asserts that no other permit holds them.
    fn hold(&self, keys: &[&str], permit: Permit) {
        let flags = || keys.iter().map(|key| &self.0[KEYS.iter().position(|k| k == key).unwrap()]);
        flags().for_each(|flag| assert!(!flag.swap(true, Ordering::SeqCst), "granted twice"));
        flags().for_each(|flag| flag.store(false, Ordering::SeqCst));
        drop(permit);
    }

    fn acquire(&self, limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
        let held = self.clone();
        thread_of(limiter, move |limiter| {
            held.hold(keys, block_on(limiter.acquire_all(keys, &Cost::new())).unwrap());
        })
    }

    /// Returns a thread that acquires, and gives up if it has to wait.
    fn poll_once(&self, limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
        let held = self.clone();
        thread_of(limiter, move |limiter| {
            let granted = poll_once(limiter.acquire_all(keys, &Cost::new()));
            granted.into_iter().for_each(|permit| held.hold(keys, permit.unwrap()));
        })
    }
}

/// Returns a limiter with this quota for every key.
fn limiter(quota: Quota) -> Limiter {
    builder().quota("*", quota).build().unwrap()
}

#[test]
fn keys_in_crossing_orders_are_granted_once_to_each_request() {
    check(|| {
        let (limiter, held) = (limiter(Quota::new().concurrency(1)), Held::default());
        run_threads([
            held.acquire(&limiter, &["a", "b"]),
            held.acquire(&limiter, &["b", "c", "a"]),
            held.acquire(&limiter, &["a"]),
            held.acquire(&limiter, &["b"]),
            held.poll_once(&limiter, &["c", "b", "a"]),
        ]);
        KEYS.iter().for_each(|key| assert_unused(&limiter, key));
    });
}

#[test]
fn three_keys_in_three_orders_with_capacity_for_one_grant_one() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let acquire = |keys: [&'static str; 3]| {
            let limiter = limiter.clone();
            thread::spawn(move || limiter.acquire_all(&keys, &tokens(60)).try_now().ok())
        };
        let threads = [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]].map(acquire);
        let granted = threads.map(|thread| thread.join().unwrap());
        assert_eq!(granted.iter().flatten().count(), 1);
        for key in KEYS {
            assert_eq!(level(&limiter.stats(key), &Dimension::Tokens), (0, 60), "all or none");
        }
        granted.into_iter().flatten().for_each(|permit| permit.settle(&tokens(20)));
        for key in KEYS {
            assert_eq!(level(&limiter.stats(key), &Dimension::Tokens), (20, 0));
        }
    });
}

#[test]
fn permits_of_crossing_keys_ended_add_up_on_every_key() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(110).concurrency(2));
        let act = |keys: [&'static str; 2], end: fn(Permit)| {
            thread_of(&limiter, move |limiter| {
                end(block_on(limiter.acquire_all(&keys, &tokens(40))).unwrap());
            })
        };
        run_threads([
            act(["a", "b"], |permit| permit.settle(&tokens(30))),
            act(["b", "a"], Permit::release),
            act(["b", "c"], drop),
            act(["c", "a"], |permit| permit.settle(&tokens(10))),
        ]);
        let used = KEYS.map(|key| level(&limiter.stats(key), &Dimension::Tokens));
        assert_eq!(used, [(40, 0), (70, 0), (50, 0)]);
        KEYS.iter().for_each(|key| assert_unused(&limiter, key));
    });
}

#[test]
fn request_waiting_for_one_key_holds_no_other() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("a", &Cost::new()).unwrap();
        let wait = thread_of(&limiter, |limiter| {
            drop(block_on(limiter.acquire_all(&["c", "a"], &Cost::new())).unwrap());
        });
        // The first request is admitted only after these.
        let pass = thread_of(&limiter, move |limiter| {
            drop(limiter.try_acquire("c", &Cost::new()).expect("the key is free"));
            drop(block_on(limiter.acquire_all(&["b", "c"], &Cost::new())).unwrap());
            drop(held);
        });
        run_threads([wait, pass]);
        KEYS.iter().for_each(|key| assert_unused(&limiter, key));
    });
}

#[test]
fn quotas_removed_while_several_keys_are_awaited_end_all() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap();
        let wait = |keys: [&'static str; 2]| {
            // The request is rejected because of the removal, or admitted.
            thread_of(&limiter, move |limiter| {
                drop(block_on(limiter.acquire_all(&keys, &Cost::new())));
            })
        };
        let change = thread_of(&limiter, |limiter| {
            limiter.quotas().set("a", &Quota::new().concurrency(2)).unwrap();
            limiter.quotas().remove("a");
            limiter.quotas().remove("*");
        });
        run_threads([wait(["a", "b"]), wait(["b", "a"]), change, Box::new(move || drop(held))]);
        KEYS.iter().for_each(|key| assert_unused(&limiter, key));
    });
}

#[test]
fn keys_in_crossing_orders_settled_while_awaited_all_end() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1).rpm(9));
        let held = limiter.acquire_all(&["b", "c"], &Cost::new()).try_now().unwrap();
        let act = |keys: &'static [&'static str]| {
            thread_of(&limiter, move |limiter| {
                drop(block_on(limiter.acquire_all(keys, &Cost::new())).unwrap());
            })
        };
        run_threads([
            act(&["a", "b"]),
            act(&["b", "a"]),
            act(&["c", "b", "a"]),
            Box::new(move || held.settle(&Cost::new())),
        ]);
        let used = KEYS.map(|key| level(&limiter.stats(key), &Dimension::Requests).0);
        assert_eq!(used, [3, 4, 2]);
        KEYS.iter().for_each(|key| assert_unused(&limiter, key));
    });
}

const KEYS: [&str; 3] = ["a", "b", "c"];
