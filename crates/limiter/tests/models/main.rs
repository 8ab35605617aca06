//! Models of threads that use one limiter at the same time: each runs under many schedules, which
//! switch threads at locks and atomics. They are only built with `RUSTFLAGS="--cfg shuttle"`; see
//! scripts/test.sh.
//!
//! A waiter that is not woken blocks its thread for ever, and so do two threads that wait for each
//! other's locks: shuttle reports both ("deadlock!"). A thread that retries without end exceeds the
//! maximum number of steps.
//!
//! # Limits
//! - Every atomic is treated as sequentially consistent: memory orderings are not tested.
//! - `std::sync::Arc`, `Weak` and `OnceLock`, and tokio's channels and `Notify`, have no points at
//!   which shuttle switches threads. A reference count is read, and `Arc::get_mut` succeeds, in one step
//!   with the code up to the next lock. So a race with the drop of an `Arc` is found only if a lock or an
//!   atomic lies between the read of the count and its use.
//! - One clock reading is one step: [`ManualClock`] reads an atomic.

#![cfg(shuttle)]

mod claims;
mod clock;
mod close;
mod expiry;
#[path = "../../../testing/src/full.rs"]
#[expect(unreachable_pub, reason = "public for the crates that include it as a module")]
mod full;
mod gates;
mod journal;
mod permits;
mod queue;
mod quota_changes;
mod retirement;
mod several_keys;
mod wakers;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use paceline_limiter::limiter::{Builder, Gate, KeyStats, Limiter, ManualClock};
use paceline_limiter::quota::{Cost, Dimension, Margin, Quota};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, MaxSteps, Runner, thread};

use full::full_or;

/// A thread of a model.
type Thread = Box<dyn FnOnce() + Send>;

/// Runs a model under random schedules, and under schedules that switch at a few random points. A
/// failing schedule is printed; `SHUTTLE_RANDOM_SEED` replaces the seed below.
fn check(model: impl Fn() + Clone + Send + Sync + 'static) {
    let schedules = full_or(1_500, 500);
    run(RandomScheduler::new_from_seed(SEED, schedules), model.clone());
    run(PctScheduler::new_from_seed(SEED, SWITCHES, schedules), model);
}

fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 17;
    config.max_steps = MaxSteps::FailAfter(20_000);
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(model);
}

/// Returns a limiter for the key `k`, without margin, whose clock does not advance.
fn limiter(quota: Quota) -> Limiter {
    builder().quota("k", quota).build().unwrap()
}

fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).clock(ManualClock::new())
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

/// Returns a thread that uses the limiter.
fn thread_of(limiter: &Limiter, act: impl FnOnce(&Limiter) + Send + 'static) -> Thread {
    let limiter = limiter.clone();
    Box::new(move || act(&limiter))
}

/// Runs all threads and waits for them to end.
fn run_threads<const N: usize>(threads: [Thread; N]) {
    let threads = threads.map(thread::spawn);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Waits for a future. Unlike `shuttle::future::block_on`, it keeps a wake-up that arrives while
/// `poll` waits for a lock (lost by shuttle-engine 0.1.7).
fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => signal.wait(),
        }
    }
}

#[derive(Default)]
struct Signal {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn wait(&self) {
        let asleep = |woken: &mut bool| !*woken;
        *self.changed.wait_while(self.woken.lock().unwrap(), asleep).unwrap() = false;
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// Polls once, and drops a future that is not ready after other threads had a chance to run.
fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => {
            thread::yield_now();
            None
        }
    }
}

/// Waits until the gate opens.
fn wait_open(mut gate: Gate) {
    block_on(poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)));
}

/// Returns the amounts used and held of one dimension.
fn level(stats: &KeyStats, dimension: &Dimension) -> (u64, u64) {
    let limit = stats.limits.iter().find(|limit| limit.dimension == *dimension);
    limit.map(|limit| (limit.used, limit.held)).unwrap()
}

/// Returns the number of requests that a key has used.
fn requests(limiter: &Limiter, key: &str) -> u64 {
    level(&limiter.stats(key), &Dimension::Requests).0
}

/// Asserts that no request waits for the key or holds a part of its limits.
fn assert_unused(limiter: &Limiter, key: &str) {
    let stats = limiter.stats(key);
    assert_eq!(stats.waiting, 0);
    assert!(stats.limits.iter().all(|limit| limit.held == 0), "{stats:?}");
}

const SWITCHES: usize = 3;
const SEED: u64 = 0x0074_6f6c_6c67_6174;
