//! Models of what threads do to a limiter at once: each runs under many schedules, which switch
//! threads at locks and atomics. Not a test of memory orderings: every atomic is taken to be
//! sequentially consistent. Built by `RUSTFLAGS="--cfg shuttle"` alone; see scripts/test.sh.
//!
//! A waiter that nobody wakes blocks its thread for ever: shuttle says so ("deadlock!").

#![cfg(shuttle)]

mod changes;
mod clock;
mod forgetting;
#[path = "../../crates/testing/src/full.rs"]
#[expect(unreachable_pub, reason = "it is public where other tests have it from")]
mod full;
mod gates;
mod permits;
mod queue;
mod running;
mod scopes;
mod waker;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, MaxSteps, Runner, thread};
use tollgate::engine::Margin;
use tollgate::limiter::{Builder, KeyStats, Limiter, ManualClock};
use tollgate::quota::{Cost, Dimension, Quota};

use full::full_or;

/// Runs a model under random schedules, and under such as switch seldom but at random places. What
/// fails is printed as a schedule; `SHUTTLE_RANDOM_SEED` sets another seed than the one below.
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

/// A limiter for every key of this quota, without margin, whose time stands still.
fn limiter(quota: Quota) -> Limiter {
    builder().quota("k", quota).build().unwrap()
}

fn builder() -> Builder {
    Limiter::builder().margin(Margin::NONE).clock(ManualClock::new())
}

fn tokens(amount: u64) -> Cost {
    Cost::new().tokens(amount)
}

/// Runs each in a thread of its own, and waits for all.
fn together<const N: usize>(threads: [Box<dyn FnOnce() + Send>; N]) {
    let threads = threads.map(thread::spawn);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Waits for a future. Not `shuttle::future::block_on`: a thread that is woken there while it waits
/// for a lock inside of `poll` forgets that it was woken (shuttle-engine 0.1.7).
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

/// Polls once, and drops what isn't ready after other threads had a chance to run.
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

/// Used and held of one dimension.
fn level(stats: &KeyStats, dimension: &Dimension) -> (u64, u64) {
    let limit = stats.limits.iter().find(|limit| limit.dimension == *dimension);
    limit.map(|limit| (limit.used, limit.held)).unwrap()
}

fn assert_nobody_there(limiter: &Limiter, key: &str) {
    let stats = limiter.stats(key);
    assert_eq!(stats.waiting, 0);
    assert!(stats.limits.iter().all(|limit| limit.held == 0), "{stats:?}");
}

const SWITCHES: usize = 3;
const SEED: u64 = 0x0074_6f6c_6c67_6174;
