//! Permits that end, concurrently with other permits and with waiters that leave.

use paceline_limiter::Permit;
use paceline_limiter::quota::{Cost, Dimension, Quota};
use shuttle::thread;

use super::{
    assert_unused, block_on, check, level, limiter, poll_once, run_threads, thread_of, tokens,
};

#[test]
fn permits_ended_while_a_waiter_leaves_add_up() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).rpm(100).concurrency(3));
        let [settled, dropped, released] = [(); 3].map(|()| limiter.try_acquire("k", &tokens(30)));
        let [settled, dropped, released] = [settled, dropped, released].map(Result::unwrap);
        // This request fits only when all three permits have ended.
        let wait = thread_of(&limiter, |limiter| {
            block_on(limiter.acquire("k", &tokens(50))).unwrap().settle(&tokens(49));
        });
        let leave = thread_of(&limiter, |limiter| {
            let granted = poll_once(limiter.acquire("k", &tokens(50)));
            granted.into_iter().for_each(|permit| permit.unwrap().release());
        });
        run_threads([
            wait,
            leave,
            Box::new(move || settled.settle(&tokens(20))),
            Box::new(move || drop(dropped)),
            Box::new(move || released.release()),
        ]);
        let stats = limiter.stats("k");
        assert_eq!(level(&stats, &Dimension::Tokens), (20 + 30 + 49, 0));
        assert_eq!(
            level(&stats, &Dimension::Requests),
            (3, 0),
            "a released request is not charged"
        );
        assert_unused(&limiter, "k");
    });
}

#[test]
fn requests_beyond_the_limit_made_concurrently_are_refused() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).concurrency(2));
        let acquire = || {
            let limiter = limiter.clone();
            move || limiter.try_acquire("k", &tokens(40)).ok()
        };
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(acquire())).collect();
        let granted = threads.into_iter().filter_map(|thread| thread.join().unwrap());
        let granted: Vec<_> = granted.collect();
        assert_eq!(granted.len(), 2);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (0, 80));
        assert_eq!(level(&limiter.stats("k"), &Dimension::Concurrency).1, 2);
        drop(granted);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (80, 0));
    });
}

/// The first of two waiters is dropped, possibly after it was woken, while the permit that both
/// wait for ends: the second is admitted.
fn first_waiter_dropped_while_permit_ends(end: fn(Permit)) {
    check(move || {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let [mut first, mut second] = [(); 2].map(|()| limiter.acquire("k", &Cost::new()));
        assert!(first.arrive().is_none() && second.arrive().is_none());
        run_threads([
            Box::new(move || drop(poll_once(&mut first))),
            Box::new(move || drop(block_on(second).unwrap())),
            Box::new(move || end(held)),
        ]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn first_waiter_dropped_while_permit_is_settled_wakes_next() {
    first_waiter_dropped_while_permit_ends(|permit| permit.settle(&Cost::new()));
}

#[test]
fn first_waiter_dropped_while_permit_is_released_wakes_next() {
    first_waiter_dropped_while_permit_ends(Permit::release);
}

#[test]
fn first_waiter_dropped_while_permit_is_dropped_wakes_next() {
    first_waiter_dropped_while_permit_ends(drop);
}

#[test]
fn first_waiter_dropped_unpolled_while_permit_ends_wakes_next() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let [mut first, mut second] = [(); 2].map(|()| limiter.acquire("k", &Cost::new()));
        assert!(first.arrive().is_none() && second.arrive().is_none());
        run_threads([
            Box::new(move || drop(first)),
            Box::new(move || drop(block_on(second).unwrap())),
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn permit_without_held_amount_settled_while_used_adds_up() {
    check(|| {
        let limiter = limiter(Quota::new().rpm(9));
        let [kept, settled, released] =
            [(); 3].map(|()| limiter.try_acquire("k", &Cost::new()).unwrap());
        let acquire = thread_of(&limiter, |limiter| {
            drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        });
        run_threads([
            acquire,
            Box::new(move || drop(kept)),
            Box::new(move || settled.settle(&Cost::new().requests(3))),
            Box::new(move || released.release()),
        ]);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Requests), (1 + 1 + 3, 0));
    });
}
