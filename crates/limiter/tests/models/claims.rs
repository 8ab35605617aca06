//! The claims of services' gates, against calls, drops and cancellations, and gates that are forgotten.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::limiter::{Gate, Limiter, ManualClock, Priority};
use paceline_limiter::quota::{Cost, Quota};
use shuttle::scheduler::RandomScheduler;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use super::{
    Thread, assert_unused, block_on, builder, check, limiter, poll_once, run_threads, thread_of,
};

fn gate(limiter: &Limiter, keys: &[&str]) -> Gate {
    limiter.gate(keys).unwrap().of_service()
}

fn wait_open(gate: &mut Gate) {
    block_on(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
}

/// Returns a thread that sends a request through a service with this gate.
fn call(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| {
        let mut gate = gate(limiter, keys);
        wait_open(&mut gate);
        let (acquire, arrived) = gate.call(limiter.acquire_all(keys, &Cost::new()));
        drop(arrived.unwrap_or_else(|| block_on(acquire)).unwrap());
    })
}

/// Returns a thread that waits until the service is ready, and drops it.
fn drop_ready(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| wait_open(&mut gate(limiter, keys)))
}

/// Returns a thread that drops its service, whether it is ready or not.
fn drop_any(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| {
        let mut gate = gate(limiter, keys);
        poll_once(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
    })
}

/// Returns a thread that sends a request through a service, and cancels it if it has to wait.
fn cancel(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| {
        let mut gate = gate(limiter, keys);
        wait_open(&mut gate);
        let (acquire, arrived) = gate.call(limiter.acquire_all(keys, &Cost::new()));
        drop(arrived.or_else(|| poll_once(acquire)));
    })
}

fn acquire(limiter: &Limiter, keys: &'static [&'static str]) -> Thread {
    thread_of(limiter, move |limiter| {
        drop(block_on(limiter.acquire_all(keys, &Cost::new())).unwrap());
    })
}

/// Runs the threads while time passes, in which claims lapse.
fn run_while_time_passes<const N: usize>(clock: &ManualClock, threads: [Thread; N]) {
    let left = Arc::new(AtomicUsize::new(N));
    let threads = threads.map(|act| {
        let left = Arc::clone(&left);
        thread::spawn(move || {
            act();
            left.fetch_sub(1, Ordering::SeqCst);
        })
    });
    while left.load(Ordering::SeqCst) > 0 {
        clock.advance(Duration::from_millis(60));
        thread::yield_now();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Runs a model under random schedules. Others would run the thread that lets time pass alone.
fn check_fairly(model: impl Fn() + Clone + Send + Sync + 'static) {
    super::run(RandomScheduler::new_from_seed(super::SEED, super::full_or(3_000, 1_000)), model);
}

/// The claims end by calls and drops alone, since the clock doesn't advance.
#[test]
fn claims_called_dropped_and_cancelled_let_all_others_end() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        run_threads([
            call(&limiter, &["k"]),
            drop_ready(&limiter, &["k"]),
            cancel(&limiter, &["k"]),
            acquire(&limiter, &["k"]),
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "k");
        drop(limiter.try_acquire("k", &Cost::new()).expect("no claim is left"));
    });
}

#[test]
fn claims_dropped_while_calls_wait_let_all_others_end() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(2));
        let held = [0; 2].map(|_| limiter.try_acquire("k", &Cost::new()).unwrap());
        run_threads([
            call(&limiter, &["k"]),
            drop_any(&limiter, &["k"]),
            drop_any(&limiter, &["k"]),
            call(&limiter, &["k"]),
            thread_of(&limiter, |limiter| {
                block_on(limiter.wait_for_capacity("k", &Cost::new())).unwrap();
            }),
            Box::new(move || held.into_iter().for_each(drop)),
        ]);
        assert_unused(&limiter, "k");
        drop(limiter.try_acquire("k", &Cost::new()).expect("no claim is left"));
    });
}

#[test]
fn claims_of_two_keys_in_crossing_orders_let_all_end() {
    check_fairly(|| {
        let clock = ManualClock::new();
        let limiter = builder().quota("*", Quota::new().concurrency(1)).clock(clock.clone());
        let limiter = limiter.build().unwrap();
        let [a, b] = ["a", "b"].map(|key| limiter.try_acquire(key, &Cost::new()).unwrap());
        run_while_time_passes(
            &clock,
            [
                call(&limiter, &["a", "b"]),
                call(&limiter, &["b", "a"]),
                acquire(&limiter, &["b", "a"]),
                Box::new(move || drop(a)),
                Box::new(move || drop(b)),
            ],
        );
        ["a", "b"].iter().for_each(|key| assert_unused(&limiter, key));
    });
}

#[test]
fn requests_beside_forgotten_gates_end() {
    check_fairly(|| {
        let clock = ManualClock::new();
        let limiter = builder().quota("k", Quota::new().concurrency(1)).clock(clock.clone());
        let limiter = limiter.build().unwrap();
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let mut forgotten = [0; 2].map(|_| gate(&limiter, &["k"]));
        for gate in &mut forgotten {
            poll_once(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
        }
        run_while_time_passes(
            &clock,
            [
                acquire(&limiter, &["k"]),
                call(&limiter, &["k"]),
                Box::new(move || drop(held)) as Thread,
            ],
        );
        drop(forgotten);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn priorities_displacing_heads_while_permits_end_let_all_end() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let of = |level: i8, flow: &'static str, ends: bool| {
            thread_of(&limiter, move |limiter| {
                let acquire = limiter.acquire("k", &Cost::new());
                let acquire = acquire.priority(Priority::new(level)).flow(flow);
                if ends {
                    drop(block_on(acquire).unwrap());
                } else {
                    drop(poll_once(acquire));
                }
            })
        };
        run_threads([
            of(0, "a", true),
            of(1, "a", true),
            of(1, "b", true),
            of(2, "b", false),
            call(&limiter, &["k"]),
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "k");
    });
}

/// The permits stay held, so that only the grants wake those behind.
#[test]
fn flows_granted_while_permits_are_held_wake_next() {
    check(|| {
        let limiter = limiter(Quota::new().rpm(4).rpd(5));
        let used = Cost::new().requests(4);
        limiter.try_acquire("k", &used).unwrap().settle(&used);
        let of = |flow: &'static str| {
            thread_of(&limiter, move |limiter| {
                let permit = block_on(limiter.acquire("k", &Cost::new()).flow(flow)).unwrap();
                std::mem::forget(permit);
            })
        };
        run_threads([
            of("a"),
            of("a"),
            of("b"),
            of("b"),
            thread_of(&limiter, |limiter| {
                limiter.quotas().set("k", &Quota::new().rpm(9).rpd(9)).unwrap();
            }),
        ]);
    });
}

#[test]
fn gates_of_key_that_comes_under_shared_glob_open() {
    check_fairly(|| {
        let clock = ManualClock::new();
        let limiter = builder().quota("m-1", Quota::new().concurrency(1)).clock(clock.clone());
        let limiter = limiter.build().unwrap();
        let held = limiter.try_acquire("m-1", &Cost::new()).unwrap();
        run_while_time_passes(
            &clock,
            [
                call(&limiter, &["m-1"]),
                call(&limiter, &["m-2", "m-1"]),
                acquire(&limiter, &["m-1"]),
                drop_any(&limiter, &["m-1"]),
                thread_of(&limiter, |limiter| {
                    limiter.quotas().set("m-*", &Quota::new().concurrency(2).shared()).unwrap();
                    limiter.quotas().remove("m-1");
                }),
                Box::new(move || drop(held)),
            ],
        );
        assert_unused(&limiter, "m-2");
    });
}
