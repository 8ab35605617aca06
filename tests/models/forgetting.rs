//! Keys that are forgotten while permits, handles and waiters of them live.

use shuttle::thread;
use tollgate::limiter::{Builder, Code, Limiter};
use tollgate::quota::{Cost, Dimension, Quota};

use super::{assert_nobody_there, block_on, builder, check, level, together};

/// Every key of this quota.
fn all(quota: Quota) -> Builder {
    builder().quota("*", quota)
}

/// As many new keys as it takes for some to get the places of those that were forgotten.
fn newcomers(limiter: &Limiter) {
    for key in NEW {
        drop(limiter.try_acquire(key, &Cost::new()).unwrap());
    }
}

fn used(limiter: &Limiter, key: &str) -> u64 {
    level(&limiter.stats(key), &Dimension::Requests).0
}

#[test]
fn a_permit_of_a_forgotten_key_gives_nothing_back_to_the_one_in_its_place() {
    check(|| {
        let limiter = all(Quota::new().rpm(5)).build().unwrap();
        let permits = ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new()).unwrap());
        let replace = {
            let limiter = limiter.clone();
            move || {
                limiter.reset_all();
                limiter.prune();
                newcomers(&limiter);
            }
        };
        let end = move || permits.into_iter().for_each(tollgate::Permit::release);
        together([Box::new(replace), Box::new(end)]);
        NEW.iter().for_each(|key| assert_eq!(used(&limiter, key), 1, "{key}"));
    });
}

#[test]
fn what_a_key_has_used_is_not_forgotten_while_others_are() {
    check(|| {
        let limiter = all(Quota::new().rpm(5)).build().unwrap();
        let take = |limiter: Limiter| move || drop(limiter.try_acquire("a", &Cost::new()).unwrap());
        let by_handle = {
            let limiter = limiter.clone();
            move || {
                let handle = limiter.key("a").unwrap();
                drop(handle.try_acquire(&Cost::new()).unwrap());
            }
        };
        let forget = {
            let limiter = limiter.clone();
            move || {
                limiter.prune();
                newcomers(&limiter);
                limiter.prune();
            }
        };
        together([
            Box::new(take(limiter.clone())),
            Box::new(take(limiter.clone())),
            Box::new(by_handle),
            Box::new(forget),
        ]);
        assert_eq!(used(&limiter, "a"), 3);
        NEW.iter().for_each(|key| assert_eq!(used(&limiter, key), 1, "{key}"));
    });
}

#[test]
fn a_handle_keeps_its_place_however_idle_its_key_is() {
    check(|| {
        let limiter = all(Quota::new().rpm(5)).build().unwrap();
        let handle = limiter.key("a").unwrap();
        let use_it = move || {
            let other = handle.clone();
            drop(handle);
            assert_eq!(other.key(), "a");
            drop(other.try_acquire(&Cost::new()).unwrap());
            assert_eq!(level(&other.stats(), &Dimension::Requests), (1, 0));
        };
        let forget = {
            let limiter = limiter.clone();
            move || {
                limiter.prune();
                newcomers(&limiter);
            }
        };
        together([Box::new(use_it), Box::new(forget)]);
        assert_eq!(used(&limiter, "a"), 1);
    });
}

#[test]
fn a_key_is_not_forgotten_while_somebody_waits_for_it_or_for_another_with_it() {
    check(|| {
        let limiter = all(Quota::new().concurrency(1).rpm(9)).build().unwrap();
        let held = limiter.try_acquire("a", &Cost::new()).unwrap();
        let wait = |keys: &'static [&'static str]| -> Box<dyn FnOnce() + Send> {
            let limiter = limiter.clone();
            Box::new(move || drop(block_on(limiter.acquire_all(keys, &Cost::new())).unwrap()))
        };
        let forget = {
            let limiter = limiter.clone();
            move || {
                limiter.prune();
                newcomers(&limiter);
            }
        };
        together([
            wait(&["b", "a"]),
            wait(&["a"]),
            Box::new(forget),
            Box::new(move || held.release()),
        ]);
        assert_eq!((used(&limiter, "a"), used(&limiter, "b")), (2, 1));
        ["a", "b"].iter().for_each(|key| assert_nobody_there(&limiter, key));
        NEW.iter().for_each(|key| assert_eq!(used(&limiter, key), 1, "{key}"));
        limiter.reset_all();
        assert_eq!(limiter.prune(), NEW.len() + 2, "nothing keeps them when nobody waits");
    });
}

#[test]
fn there_is_room_for_every_key_up_to_the_bound_whoever_makes_them_at_once() {
    check(|| {
        let limiter = all(Quota::new().rpm(5)).max_keys(2).build().unwrap();
        let take = |key: &'static str| -> Box<dyn FnOnce() + Send> {
            let limiter = limiter.clone();
            Box::new(move || drop(limiter.try_acquire(key, &Cost::new()).unwrap()))
        };
        together([take("a"), take("b"), take("a"), take("b")]);
        assert_eq!((used(&limiter, "a"), used(&limiter, "b")), (2, 2));
        assert_room_for(&limiter, 0);
        limiter.reset_all();
        assert_eq!(limiter.prune(), 2);
        assert_room_for(&limiter, 2);
    });
}

#[test]
fn the_count_of_keys_is_exact_however_many_come_and_are_forgotten() {
    check(|| {
        let limiter = all(Quota::new().rpm(5)).max_keys(2).build().unwrap();
        let come_and_go = |key: &'static str| {
            let limiter = limiter.clone();
            thread::spawn(move || match limiter.try_acquire(key, &Cost::new()) {
                Ok(permit) => permit.release(),
                Err(refused) => assert_eq!(refused.code, Code::TooManyKeys),
            })
        };
        let threads = ["a", "b", "c", "a"].map(come_and_go);
        let mut pruned = limiter.prune();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(limiter.keys().len() <= 2);
        pruned += limiter.prune();
        assert!(pruned <= 4 && limiter.keys().is_empty());
        assert_room_for(&limiter, 2);
    });
}

#[test]
fn an_idle_key_makes_room_for_a_new_one_whoever_forgets_it() {
    // Of these some fall into the part of the keys that the idle one is in.
    for key in NEW {
        check(move || room_for(key));
    }
}

fn room_for(key: &'static str) {
    let limiter = all(Quota::new().rpm(5)).max_keys(1).build().unwrap();
    limiter.try_acquire("a", &Cost::new()).unwrap().release();
    let prune = {
        let limiter = limiter.clone();
        move || assert!(limiter.prune() <= 2)
    };
    let take = {
        let limiter = limiter.clone();
        move || drop(limiter.try_acquire(key, &Cost::new()).unwrap())
    };
    together([Box::new(prune), Box::new(take)]);
    assert_eq!(used(&limiter, key), 1);
    let several = limiter.acquire_all(&[key, "c"], &Cost::new()).try_now();
    assert_eq!(several.unwrap_err().code, Code::TooManyKeys);
}

/// Whether there is room for so many more keys and no others.
fn assert_room_for(limiter: &Limiter, keys: usize) {
    for (number, key) in NEW.iter().enumerate() {
        let granted = limiter.try_acquire(key, &Cost::new());
        assert_eq!(granted.is_ok(), number < keys, "{granted:?}");
    }
}

const NEW: [&str; 4] = ["w", "x", "y", "z"];
