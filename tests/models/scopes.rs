//! Requests on several keys at once, named in different orders.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use tollgate::limiter::{Limiter, Permit};
use tollgate::quota::{Cost, Dimension, Quota};

use super::{assert_nobody_there, block_on, builder, check, level, poll_once, together, tokens};

/// Who is in, key by key: each lets in one at a time.
#[derive(Debug, Clone, Default)]
struct Rooms(Arc<[AtomicBool; KEYS.len()]>);

impl Rooms {
    fn visit(&self, keys: &[&str], permit: Permit) {
        let rooms = || keys.iter().map(|key| &self.0[KEYS.iter().position(|k| k == key).unwrap()]);
        rooms().for_each(|room| assert!(!room.swap(true, Ordering::SeqCst), "taken twice"));
        rooms().for_each(|room| room.store(false, Ordering::SeqCst));
        drop(permit);
    }
}

/// Every key of this quota.
fn limiter(quota: Quota) -> Limiter {
    builder().quota("*", quota).build().unwrap()
}

#[test]
fn keys_in_any_order_neither_deadlock_nor_are_taken_twice() {
    check(|| {
        let (limiter, rooms) = (limiter(Quota::new().concurrency(1)), Rooms::default());
        let stay = |keys: &'static [&'static str]| -> Box<dyn FnOnce() + Send> {
            let (limiter, rooms) = (limiter.clone(), rooms.clone());
            Box::new(move || {
                let permit = block_on(limiter.acquire_all(keys, &Cost::new())).unwrap();
                rooms.visit(keys, permit);
            })
        };
        let leave = |keys: &'static [&'static str]| -> Box<dyn FnOnce() + Send> {
            let (limiter, rooms) = (limiter.clone(), rooms.clone());
            Box::new(move || {
                let granted = poll_once(limiter.acquire_all(keys, &Cost::new()));
                granted.into_iter().for_each(|permit| rooms.visit(keys, permit.unwrap()));
            })
        };
        together([
            stay(&["a", "b"]),
            stay(&["b", "c", "a"]),
            stay(&["a"]),
            stay(&["b"]),
            leave(&["c", "b", "a"]),
        ]);
        KEYS.iter().for_each(|key| assert_nobody_there(&limiter, key));
    });
}

#[test]
fn of_two_for_whom_there_is_room_once_exactly_one_gets_everything() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let ask = |keys: [&'static str; 3]| {
            let limiter = limiter.clone();
            thread::spawn(move || limiter.acquire_all(&keys, &tokens(60)).try_now().ok())
        };
        let threads = [ask(["a", "b", "c"]), ask(["c", "a", "b"]), ask(["b", "c", "a"])];
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
fn totals_are_exact_on_every_key_however_permits_end() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(110).concurrency(2));
        let act = |keys: [&'static str; 2], end: fn(Permit)| -> Box<dyn FnOnce() + Send> {
            let limiter = limiter.clone();
            Box::new(move || end(block_on(limiter.acquire_all(&keys, &tokens(40))).unwrap()))
        };
        together([
            act(["a", "b"], |permit| permit.settle(&tokens(30))),
            act(["b", "a"], Permit::release),
            act(["b", "c"], drop),
            act(["c", "a"], |permit| permit.settle(&tokens(10))),
        ]);
        let used = KEYS.map(|key| level(&limiter.stats(key), &Dimension::Tokens));
        assert_eq!(used, [(40, 0), (70, 0), (50, 0)]);
        KEYS.iter().for_each(|key| assert_nobody_there(&limiter, key));
    });
}

#[test]
fn who_waits_for_one_key_takes_nothing_of_another_and_keeps_nobody_from_it() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let narrow = limiter.try_acquire("a", &Cost::new()).unwrap();
        let wait = {
            let limiter = limiter.clone();
            move || drop(block_on(limiter.acquire_all(&["c", "a"], &Cost::new())).unwrap())
        };
        // Else the first would wait for ever.
        let pass = {
            let limiter = limiter.clone();
            move || {
                drop(limiter.try_acquire("c", &Cost::new()).expect("nobody has it"));
                drop(block_on(limiter.acquire_all(&["b", "c"], &Cost::new())).unwrap());
                drop(narrow);
            }
        };
        together([Box::new(wait), Box::new(pass)]);
        KEYS.iter().for_each(|key| assert_nobody_there(&limiter, key));
    });
}

#[test]
fn keys_are_set_and_removed_while_requests_of_several_come_and_go() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap();
        let stay = |keys: [&'static str; 2]| -> Box<dyn FnOnce() + Send> {
            let limiter = limiter.clone();
            // Rejected by the removal, or granted: not forgotten.
            Box::new(move || drop(block_on(limiter.acquire_all(&keys, &Cost::new()))))
        };
        let change = {
            let limiter = limiter.clone();
            move || {
                limiter.quotas().set("a", &Quota::new().concurrency(2));
                limiter.quotas().remove("a");
                limiter.quotas().remove("*");
            }
        };
        together([
            stay(["a", "b"]),
            stay(["b", "a"]),
            Box::new(change),
            Box::new(move || drop(held)),
        ]);
        KEYS.iter().for_each(|key| assert_nobody_there(&limiter, key));
    });
}

const KEYS: [&str; 3] = ["a", "b", "c"];
