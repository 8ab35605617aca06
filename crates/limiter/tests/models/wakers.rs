//! Wakers may run any code when they are called or dropped, and may use the limiter: a task that is
//! dropped with its waker drops its permits. A waker that is called under the lock of its key
//! blocks its thread.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use paceline_limiter::limiter::{Limiter, ManualClock, Permit, RateLimited};
use paceline_limiter::quota::{Algorithm, Cost, Quota};
use shuttle::sync::Mutex;

use super::{assert_unused, builder, check, limiter, run_threads, tokens};

/// A task that owns a permit, and reads the limiter's statistics when it is woken.
struct Task {
    limiter: Limiter,
    _permit: Mutex<Option<Permit>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.limiter.stats("k");
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.limiter.stats("k");
    }
}

/// Returns a waker that is the only owner of its task.
fn task(limiter: &Limiter) -> Waker {
    let permit = limiter.try_acquire("k", &tokens(1)).ok();
    Waker::from(Arc::new(Task { limiter: limiter.clone(), _permit: Mutex::new(permit) }))
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    let _ = std::pin::Pin::new(future).poll(&mut Context::from_waker(waker));
}

#[test]
fn waker_of_waiter_is_called_and_dropped_without_a_lock() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(2).tpm(100));
        let (held, first) = (limiter.try_acquire("k", &tokens(1)).unwrap(), task(&limiter));
        let wait = {
            let limiter = limiter.clone();
            move || {
                let mut acquire = limiter.acquire("k", &tokens(1));
                if acquire.arrive().is_some() {
                    return;
                }
                // A completed future must not be polled.
                for waker in [first, task(&limiter)] {
                    if limiter.stats("k").waiting > 0 {
                        poll(&mut acquire, &waker);
                    }
                }
                let mut other = limiter.acquire("k", &tokens(1));
                poll(&mut other, &task(&limiter));
                drop(acquire);
            }
        };
        let change = {
            let limiter = limiter.clone();
            move || {
                limiter.quotas().set("k", &Quota::new().concurrency(2).tpm(90)).unwrap();
                limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::ZERO)));
                limiter.reset_all();
            }
        };
        run_threads([Box::new(wait), Box::new(change), Box::new(move || held.release())]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn waker_of_gate_is_called_and_dropped_without_a_lock() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(2));
        let (held, first) = (limiter.try_acquire("k", &Cost::new()).unwrap(), task(&limiter));
        let wait = {
            let limiter = limiter.clone();
            move || {
                let mut gate = limiter.gate(&["k"]).unwrap();
                let mut other = limiter.gate(&["k"]).unwrap();
                for waker in [first, task(&limiter)] {
                    let mut cx = Context::from_waker(&waker);
                    let _ = gate.poll_open(&Cost::new(), None, &mut cx);
                    let _ = other.poll_open(&Cost::new(), None, &mut cx);
                }
            }
        };
        run_threads([Box::new(wait), Box::new(move || held.release())]);
        assert_unused(&limiter, "k");
    });
}

#[test]
fn waker_of_timer_is_called_and_dropped_without_a_lock() {
    check(|| {
        let clock = ManualClock::new();
        let quota = Quota::new().rpm(1).concurrency(2).with_algorithm(Algorithm::TokenBucket);
        let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
        let first = task(&limiter);
        let wait = {
            let limiter = limiter.clone();
            move || {
                let mut acquire = limiter.acquire("k", &Cost::new());
                if acquire.arrive().is_some() {
                    return;
                }
                poll(&mut acquire, &first);
                drop(first);
                if limiter.stats("k").waiting > 0 {
                    poll(&mut acquire, &task(&limiter));
                }
            }
        };
        run_threads([Box::new(wait), Box::new(move || clock.advance(Duration::from_secs(60)))]);
        assert_unused(&limiter, "k");
    });
}
