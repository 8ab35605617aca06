//! The queue of a key: each waiter that ends or leaves wakes the next.

use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::limiter::{Acquire, AcquireError, Limiter, ManualClock, Permit};
use paceline_limiter::quota::{Algorithm, Cost, Quota};
use shuttle::sync::Mutex;

use super::clock::JumpingClock;
use super::{assert_unused, block_on, builder, check, limiter, poll_once, run_threads, thread_of};

/// The numbers of the requests that wait, in order of arrival. A number is added on arrival and
/// removed after the request was admitted or has left.
#[derive(Debug, Clone, Default)]
struct Arrivals(Arc<Mutex<Vec<usize>>>);

impl Arrivals {
    fn arrive(&self, number: usize, acquire: &mut Acquire) -> Option<Permit> {
        let mut waiting = self.0.lock().unwrap();
        let Some(permit) = acquire.arrive() else {
            waiting.push(number);
            return None;
        };
        assert!(waiting.is_empty(), "a newcomer was admitted before {waiting:?}");
        Some(permit.unwrap())
    }

    /// With one permit at a time, no other request is admitted before this is called.
    fn granted(&self, number: usize) {
        assert_eq!(self.0.lock().unwrap().remove(0), number, "admitted out of order");
    }

    fn leave(&self, number: usize) {
        self.0.lock().unwrap().retain(|&other| other != number);
    }

    fn try_acquire(&self, limiter: &Limiter) {
        let waiting = self.0.lock().unwrap();
        let granted = limiter.try_acquire("k", &Cost::new());
        assert!(granted.is_err() || waiting.is_empty(), "admitted before {waiting:?}");
    }
}

fn stay(limiter: &Limiter, arrivals: &Arrivals, number: usize) {
    let mut acquire = limiter.acquire("k", &Cost::new());
    let _permit = arrivals.arrive(number, &mut acquire).unwrap_or_else(|| {
        let permit = block_on(acquire).unwrap();
        arrivals.granted(number);
        permit
    });
}

fn leave(limiter: &Limiter, arrivals: &Arrivals, number: usize) {
    let mut acquire = limiter.acquire("k", &Cost::new());
    if arrivals.arrive(number, &mut acquire).is_some() {
        return;
    }
    match poll_once(&mut acquire) {
        Some(permit) => {
            let _permit = permit.unwrap();
            arrivals.granted(number);
        }
        None => arrivals.leave(number),
    }
}

#[test]
fn waiters_among_leaving_waiters_are_admitted_in_order() {
    check(|| {
        let (limiter, arrivals) = (limiter(Quota::new().concurrency(1)), Arrivals::default());
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let thread = |number: usize, act: fn(&Limiter, &Arrivals, usize)| {
            let arrivals = arrivals.clone();
            thread_of(&limiter, move |limiter| act(limiter, &arrivals, number))
        };
        let newcomer = |limiter: &Limiter, arrivals: &Arrivals, _| arrivals.try_acquire(limiter);
        run_threads([
            thread(1, stay),
            thread(2, leave),
            thread(3, stay),
            thread(4, leave),
            thread(5, newcomer),
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn first_waiter_dropped_hands_timer_to_next() {
    check(|| {
        let clock = JumpingClock::default();
        let quota = Quota::new().rpm(1).with_algorithm(Algorithm::TokenBucket);
        let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
        let (arrivals, grants) = (Arrivals::default(), Arc::new(Mutex::new(Vec::new())));
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        let stay = |number: usize| {
            let (arrivals, grants) = (arrivals.clone(), Arc::clone(&grants));
            thread_of(&limiter, move |limiter| {
                let mut acquire = limiter.acquire("k", &Cost::new());
                // No number is removed: these are all arrivals so far.
                let mut arrived = arrivals.0.lock().unwrap();
                let result = acquire.arrive();
                arrived.push(number);
                let rank = arrived.len();
                drop(arrived);
                let permit = result.unwrap_or_else(|| block_on(acquire)).unwrap();
                let granted_at = permit.granted_at();
                grants.lock().unwrap().push((granted_at, rank));
            })
        };
        let leave = thread_of(&limiter, |limiter| {
            drop(poll_once(limiter.acquire("k", &Cost::new())));
        });
        clock.run(|| run_threads([stay(1), leave, stay(2)]));
        let mut grants = grants.lock().unwrap().clone();
        grants.sort_unstable();
        // Not in order of arrival: a waiter whose thread is suspended while time passes may be passed.
        let mut ranks: Vec<_> = grants.iter().map(|&(_, rank)| rank).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [1, 2]);
        assert!(grants[0].0 >= ManualClock::START + MINUTE, "admitted too early: {grants:?}");
        assert!(grants[1].0 >= grants[0].0 + MINUTE, "admitted too early: {grants:?}");
        assert_unused(&limiter, "k");
    });
}

#[test]
fn waiter_moved_to_another_task_is_woken_there() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(1));
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let mut acquire = limiter.acquire("k", &Cost::new());
        assert!(acquire.arrive().is_none());
        let moved = move || drop(block_on(acquire).unwrap());
        run_threads([Box::new(moved), Box::new(move || held.release())]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn full_queue_left_by_waiters_admits_waiters_again() {
    check(|| {
        let quota = Quota::new().concurrency(1);
        let limiter = builder().quota("k", quota).max_waiting(1).build().unwrap();
        let held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let wait = |limiter: &Limiter| match block_on(limiter.acquire("k", &Cost::new())) {
            Ok(permit) => drop(permit),
            Err(AcquireError::QueueFull { waiting, .. }) => assert_eq!(waiting, 1),
            Err(error) => panic!("{error}"),
        };
        let leave = |limiter: &Limiter| drop(poll_once(limiter.acquire("k", &Cost::new())));
        run_threads([
            thread_of(&limiter, wait),
            thread_of(&limiter, wait),
            thread_of(&limiter, leave),
            Box::new(move || drop(held)),
        ]);
        assert_unused(&limiter, "k");
    });
}

const MINUTE: Duration = Duration::from_secs(60);
