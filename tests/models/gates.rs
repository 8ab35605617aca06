//! Gates: handed on from one to the next. Time stands still, so no gate is saved by the time at which
//! it would look again of itself.

use std::future::poll_fn;

use tollgate::limiter::Limiter;
use tollgate::quota::{Cost, Quota};

use super::{assert_nobody_there, block_on, builder, check, limiter, poll_once, together};

fn pass(limiter: &Limiter, keys: &[&str]) {
    let mut gate = limiter.gate(keys).unwrap();
    block_on(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
}

fn turn_away(limiter: &Limiter, keys: &[&str]) {
    let mut gate = limiter.gate(keys).unwrap();
    poll_once(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
}

fn with(
    limiter: &Limiter,
    act: impl FnOnce(&Limiter) + Send + 'static,
) -> Box<dyn FnOnce() + Send> {
    let limiter = limiter.clone();
    Box::new(move || act(&limiter))
}

#[test]
fn every_gate_opens_whichever_is_dropped() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        together([
            with(&limiter, |limiter| pass(limiter, &["k"])),
            with(&limiter, |limiter| turn_away(limiter, &["k"])),
            with(&limiter, |limiter| pass(limiter, &["k"])),
            with(&limiter, |limiter| drop(block_on(limiter.wait_for_capacity("k", &Cost::new())))),
            Box::new(move || drop(held)),
        ]);
        assert_nobody_there(&limiter, "k");
        drop(limiter.try_acquire("k", &Cost::new()).expect("gates take nothing"));
    });
}

#[test]
fn gates_are_woken_when_the_last_in_the_queue_leaves_or_ends() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let call = |limiter: &Limiter| {
            pass(limiter, &["k"]);
            drop(block_on(limiter.acquire("k", &Cost::new())).unwrap());
        };
        let leave = |limiter: &Limiter| drop(poll_once(limiter.acquire("k", &Cost::new())));
        together([
            with(&limiter, call),
            with(&limiter, call),
            with(&limiter, leave),
            with(&limiter, leave),
            Box::new(move || held.release()),
        ]);
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn gates_of_several_keys_open_in_whatever_order_they_are_named() {
    check(|| {
        let limiter = builder().quota("*", Quota::new().concurrency(1)).build().unwrap();
        let [a, b] = ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new()).unwrap());
        together([
            with(&limiter, |limiter| pass(limiter, &["a", "b"])),
            with(&limiter, |limiter| pass(limiter, &["b", "a"])),
            with(&limiter, |limiter| turn_away(limiter, &["a", "b"])),
            Box::new(move || drop(a)),
            Box::new(move || drop(b)),
        ]);
        ["a", "b"].iter().for_each(|key| assert_nobody_there(&limiter, key));
    });
}

/// Two gates, and something that opens both.
fn opened_by(change: fn(&Limiter)) {
    check(move || {
        let limiter = limiter(Quota::new().concurrency(2).rpd(1));
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        together([
            with(&limiter, |limiter| pass(limiter, &["k"])),
            with(&limiter, |limiter| pass(limiter, &["k"])),
            with(&limiter, change),
        ]);
    });
}

#[test]
fn gates_open_on_a_raise() {
    opened_by(|limiter| limiter.quotas().set("k", &Quota::new().concurrency(2).rpd(2)));
}

#[test]
fn gates_open_on_a_reset() {
    opened_by(|limiter| limiter.reset("k"));
}

#[test]
fn gates_open_when_the_limiter_is_closed() {
    opened_by(|limiter| block_on(limiter.close()));
}
