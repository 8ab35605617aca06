//! The operations on the queue of one key, in wall-clock time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use paceline::limiter::{Acquire, Limiter, Permit};
use paceline::quota::{Cost, Quota};

pub(crate) const KEY: &str = "gpt-4o";

/// The number of requests that wait.
const WAITERS: usize = 10_000;

/// The best of this many rounds is reported.
const ROUNDS: usize = 30;

/// The nanoseconds of each operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// A request arrives behind those that wait.
    pub(crate) insertion: f64,
    /// A request ends, and the next one is admitted.
    pub(crate) grant: f64,
    /// A waiting request, chosen at random, is dropped.
    pub(crate) cancellation: f64,
}

/// A waker that stores the number of the request that was woken last.
struct Woken {
    number: usize,
    last: Arc<AtomicUsize>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.last.store(self.number, Ordering::Relaxed);
    }
}

/// The requests that wait, and the one that was admitted before them.
struct Queue {
    waiters: Vec<Option<(Pin<Box<Acquire>>, Waker)>>,
    last_woken: Arc<AtomicUsize>,
    admitted: Option<Permit>,
}

/// Measures all operations. `prepare` sets the options of the request with a number.
pub(crate) fn measure(prepare: impl Fn(Acquire, usize) -> Acquire) -> Times {
    let quota = Quota::new().rpm(6_000_000_000).tpm(60_000_000_000).concurrency(1);
    let limiter = Limiter::builder().quota(KEY, quota).max_waiting(WAITERS).build();
    let limiter = limiter.expect("a valid quota");
    let least = |a: Times, b: Times| Times {
        insertion: a.insertion.min(b.insertion),
        grant: a.grant.min(b.grant),
        cancellation: a.cancellation.min(b.cancellation),
    };
    let rounds = (0..ROUNDS).map(|_| round(&limiter, &prepare));
    rounds.reduce(least).expect("several rounds")
}

fn round(limiter: &Limiter, prepare: &impl Fn(Acquire, usize) -> Acquire) -> Times {
    let mut queue = Queue::new(limiter, prepare);
    let insertion = time_each(|| queue.insert());
    let grant = time_each(|| queue.admit_all());
    drop(queue);
    let mut queue = Queue::new(limiter, prepare);
    queue.insert();
    let order = random_order();
    let cancellation = time_each(|| order.iter().for_each(|&number| queue.cancel(number)));
    Times { insertion, grant, cancellation }
}

impl Queue {
    fn new(limiter: &Limiter, prepare: &impl Fn(Acquire, usize) -> Acquire) -> Self {
        let cost = Cost::new().tokens(50);
        let admitted = limiter.try_acquire(KEY, &cost).expect("no request is in flight");
        let last_woken = Arc::new(AtomicUsize::new(0));
        let waiter = |number| {
            let woken = Woken { number, last: Arc::clone(&last_woken) };
            let acquire = Box::pin(prepare(limiter.acquire(KEY, &cost), number));
            Some((acquire, Waker::from(Arc::new(woken))))
        };
        let waiters = (0..WAITERS).map(waiter).collect();
        Self { waiters, last_woken, admitted: Some(admitted) }
    }

    fn insert(&mut self) {
        for (acquire, waker) in self.waiters.iter_mut().flatten() {
            let poll = acquire.as_mut().poll(&mut Context::from_waker(waker));
            assert!(poll.is_pending(), "a request is in flight");
        }
    }

    /// Ends the request in flight and polls the one that is woken, until none waits.
    fn admit_all(&mut self) {
        for _ in 0..WAITERS {
            self.admitted = None;
            let next = self.last_woken.load(Ordering::Relaxed);
            let (mut acquire, waker) = self.waiters[next].take().expect("woken once");
            let poll = acquire.as_mut().poll(&mut Context::from_waker(&waker));
            let Poll::Ready(Ok(permit)) = poll else { panic!("the woken request is admitted") };
            self.admitted = Some(permit);
        }
    }

    fn cancel(&mut self, number: usize) {
        self.waiters[number] = None;
    }
}

fn time_each(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_nanos() as f64 / WAITERS as f64
}

/// Returns the numbers of all requests in a random order, the same in each run.
fn random_order() -> Vec<usize> {
    let mut order: Vec<_> = (0..WAITERS).collect();
    let mix = |number: &usize| {
        let mixed = (*number as u64 ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 29)
    };
    order.sort_by_key(mix);
    order
}
