//! Gates that each wake the next. The clock does not advance, so a gate that is not woken never
//! opens.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::limiter::{Limiter, ManualClock};
use paceline_limiter::quota::{Cost, Margin, Quota};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use super::{
    Thread, assert_unused, block_on, builder, check, limiter, poll_once, run_threads, thread_of,
    wait_open,
};

fn pass(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| wait_open(limiter.gate(keys).unwrap()))
}

/// Returns a thread that drops its gate if the gate is closed.
fn leave(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| {
        let mut gate = limiter.gate(keys).unwrap();
        poll_once(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
    })
}

#[test]
fn gates_waiting_while_one_is_dropped_all_open() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let wait = |limiter: &Limiter| drop(block_on(limiter.wait_for_capacity("k", &Cost::new())));
        run_threads([
            pass(&limiter, &["k"]),
            leave(&limiter, &["k"]),
            pass(&limiter, &["k"]),
            thread_of(&limiter, wait),
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "k");
        drop(limiter.try_acquire("k", &Cost::new()).expect("gates reserve no amount"));
    });
}

#[test]
fn gates_behind_leaving_or_ending_requests_open() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let call = |limiter: &Limiter| {
            wait_open(limiter.gate(&["k"]).unwrap());
            drop(block_on(limiter.acquire("k", &Cost::new())).unwrap());
        };
        let leave = |limiter: &Limiter| drop(poll_once(limiter.acquire("k", &Cost::new())));
        run_threads([
            thread_of(&limiter, call),
            thread_of(&limiter, call),
            thread_of(&limiter, leave),
            thread_of(&limiter, leave),
            Box::new(move || held.release()),
        ]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn gates_of_several_keys_in_crossing_orders_open() {
    check(|| {
        let limiter = builder().quota("*", Quota::new().concurrency(1)).build().unwrap();
        let [a, b] = ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new()).unwrap());
        run_threads([
            pass(&limiter, &["a", "b"]),
            pass(&limiter, &["b", "a"]),
            leave(&limiter, &["a", "b"]),
            Box::new(move || drop(a)),
            Box::new(move || drop(b)),
        ]);
        ["a", "b"].iter().for_each(|key| assert_unused(&limiter, key));
    });
}

/// Checks two gates and a change that opens both.
fn check_opened_by(change: fn(&Limiter)) {
    check(move || {
        let limiter = limiter(Quota::new().concurrency(2).rpd(1));
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        run_threads([pass(&limiter, &["k"]), pass(&limiter, &["k"]), thread_of(&limiter, change)]);
    });
}

#[test]
fn gates_of_raised_quota_open() {
    check_opened_by(|limiter| {
        limiter.quotas().set("k", &Quota::new().concurrency(2).rpd(2)).unwrap()
    });
}

#[test]
fn gates_of_reset_key_open() {
    check_opened_by(|limiter| limiter.reset("k"));
}

#[test]
fn gates_of_closed_limiter_open() {
    check_opened_by(|limiter| block_on(limiter.close()));
}

/// A gate that is polled once and kept: the others open, whatever the order of the threads. The clock advances
/// until then.
#[test]
fn gates_and_requests_behind_forgotten_gate_end() {
    check(|| {
        let clock = ManualClock::new();
        let builder = Limiter::builder().margin(Margin::NONE).clock(clock.clone());
        let limiter = builder.quota("k", Quota::new().concurrency(1)).build().unwrap();
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let mut forgotten = limiter.gate(&["k"]).unwrap().of_service();
        poll_once(poll_fn(|cx| forgotten.poll_open(&Cost::new(), None, cx)));
        let ended = Arc::new(AtomicUsize::new(0));
        let end = |ended: &Arc<AtomicUsize>| {
            let ended = Arc::clone(ended);
            move || {
                ended.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (opened, granted, ends) = (end(&ended), end(&ended), Arc::clone(&ended));
        run_threads([
            thread_of(&limiter, move |limiter| {
                wait_open(limiter.gate(&["k"]).unwrap());
                opened();
            }),
            thread_of(&limiter, move |limiter| {
                drop(block_on(limiter.acquire("k", &Cost::new())).unwrap());
                granted();
            }),
            Box::new(move || drop(held)),
            Box::new(move || {
                while ends.load(Ordering::Relaxed) < 2 {
                    clock.advance(Duration::from_millis(100));
                    thread::yield_now();
                }
            }),
        ]);
        drop(forgotten);
        assert_unused(&limiter, "k");
    });
}
