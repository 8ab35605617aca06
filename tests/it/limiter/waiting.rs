//! Requests and gates that wait, against a reference that decides by grants and arrivals alone. Waiters are
//! polled only when they are woken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use paceline::Timestamp;
use paceline::limiter::{Acquire, Gate, Limiter, ManualClock, Permit, Priority, WaitPolicy};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};
use paceline_testing::full::full_or;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::builder;

/// Three keys, each with a limit of requests per window (in milliseconds) and a concurrency of two.
#[derive(Debug, Clone)]
struct Setup {
    limits: [u64; 3],
    windows: [u64; 3],
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    /// Time that passes before the step, in units of [`QUANTUM`].
    after: u32,
    /// The keys of the waiter, in their order.
    keys: Vec<usize>,
    amount: u64,
    is_gate: bool,
    priority: i8,
    flow: usize,
    /// The permit in flight that ends before the step, and the waiter that is dropped, if any.
    ends: Option<usize>,
    drops: Option<usize>,
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let orders =
        [vec![0], vec![1], vec![2], vec![0, 1], vec![1, 0], vec![1, 2], vec![2, 0], vec![2, 1, 0]];
    let keys = proptest::sample::select(orders.to_vec());
    let (ends, drops) =
        (proptest::option::of(0..4_usize), proptest::option::weighted(0.2, 0..4_usize));
    let step = (0..8_u32, keys, 1..4_u64, any::<bool>(), 0..3_i8, 0..3_usize, ends, drops)
        .prop_map(|(after, keys, amount, is_gate, priority, flow, ends, drops)| Step {
            after,
            keys,
            amount,
            is_gate,
            priority,
            flow,
            ends,
            drops,
        });
    proptest::collection::vec(step, 1..count)
}

fn setups(count: usize) -> impl Strategy<Value = Setup> {
    let windows = [50..600_u64, 50..600_u64, 50..600_u64];
    ([3..6_u64, 3..6_u64, 3..6_u64], windows, steps(count))
        .prop_map(|(limits, windows, steps)| Setup { limits, windows, steps })
}

/// Records whether it was woken.
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum Kind {
    Request(Acquire),
    Gate(Gate),
}

struct Waiter {
    number: usize,
    keys: Vec<usize>,
    amount: u64,
    kind: Kind,
    flag: Arc<WakeFlag>,
}

impl Waiter {
    /// Polls the waiter if it was woken.
    fn poll_if_woken(&mut self) -> Option<Poll<Option<Permit>>> {
        if !self.flag.0.swap(false, Ordering::Relaxed) {
            return None;
        }
        let waker = Waker::from(Arc::clone(&self.flag));
        let mut cx = Context::from_waker(&waker);
        Some(match &mut self.kind {
            Kind::Request(acquire) => {
                Pin::new(acquire).poll(&mut cx).map(|permit| Some(permit.unwrap()))
            }
            Kind::Gate(gate) => {
                gate.poll_open(&Cost::new().requests(self.amount), None, &mut cx).map(|()| None)
            }
        })
    }

    fn shares_key_with(&self, other: &Self) -> bool {
        self.keys.iter().any(|key| other.keys.contains(key))
    }
}

/// A limiter with its waiters, and the grants so far.
struct World {
    limiter: Limiter,
    clock: ManualClock,
    setup: Setup,
    waiting: Vec<Waiter>,
    out: Vec<(Vec<usize>, Permit)>,
    granted: [Vec<(Timestamp, u64)>; 3],
    /// The numbers of waiters that were admitted, in order.
    admitted: Vec<usize>,
    arrivals: usize,
}

const KEYS: [&str; 3] = ["a", "b", "c"];
const QUANTUM: Duration = Duration::from_millis(10);

impl World {
    fn new(setup: Setup) -> Self {
        let clock = ManualClock::new();
        let policy = WaitPolicy::new().max_starvation(Duration::from_millis(100));
        let mut builder = builder().clock(clock.clone()).wait_policy(policy);
        for (key, (limit, window)) in KEYS.iter().zip(setup.limits.iter().zip(setup.windows)) {
            let window = Window::new(Duration::from_millis(window)).unwrap();
            let limit = Limit::new(Dimension::Requests, *limit, window).unwrap();
            let glob = format!("{key}*");
            builder = builder.quota(glob, Quota::new().limit(limit).concurrency(2));
        }
        let (limiter, granted) = (builder.build().unwrap(), Default::default());
        let (waiting, out, admitted) = (Vec::new(), Vec::new(), Vec::new());
        Self { limiter, clock, setup, waiting, out, granted, admitted, arrivals: 0 }
    }

    /// Takes a step, and calls `check` after each quantum of time.
    fn take(
        &mut self,
        step: &Step,
        has_standing: bool,
        mut check: impl FnMut(&Self) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        for _ in 0..step.after {
            self.clock.advance(QUANTUM);
            self.run();
            check(self)?;
        }
        if let Some(ends) = step.ends.filter(|ends| *ends < self.out.len()) {
            drop(self.out.remove(ends));
        }
        if let Some(drops) = step.drops.filter(|drops| *drops < self.waiting.len()) {
            drop(self.waiting.remove(drops));
        }
        self.run();
        self.arrive(step, has_standing);
        self.run();
        check(self)
    }

    fn arrive(&mut self, step: &Step, has_standing: bool) {
        let keys: Vec<&str> = step.keys.iter().map(|key| KEYS[*key]).collect();
        let kind = if step.is_gate {
            Kind::Gate(self.limiter.gate(&keys).unwrap())
        } else {
            let acquire = self.limiter.acquire_all(&keys, &Cost::new().requests(step.amount));
            Kind::Request(match has_standing {
                true => acquire.priority(Priority::new(step.priority)).flow(KEYS[step.flow]),
                false => acquire,
            })
        };
        let flag = Arc::new(WakeFlag(AtomicBool::new(true)));
        let (number, keys) = (self.arrivals, step.keys.clone());
        self.waiting.push(Waiter { number, keys, amount: step.amount, kind, flag });
        self.arrivals += 1;
    }

    /// Polls the waiters that were woken, the last one first, until none is.
    fn run(&mut self) {
        loop {
            let polled = |(at, waiter): (usize, &mut Waiter)| Some((at, waiter.poll_if_woken()?));
            let Some((at, polled)) = self.waiting.iter_mut().enumerate().rev().find_map(polled)
            else {
                return;
            };
            if let Poll::Ready(permit) = polled {
                let waiter = self.waiting.remove(at);
                self.admitted.push(waiter.number);
                if let Some(permit) = permit {
                    let now = self.limiter.now();
                    waiter
                        .keys
                        .iter()
                        .for_each(|key| self.granted[*key].push((now, waiter.amount)));
                    self.out.push((waiter.keys, permit));
                }
            }
        }
    }

    /// Returns whether the amount fits under all keys of the waiter, by the grants and permits alone.
    fn fits(&self, waiter: &Waiter) -> bool {
        waiter.keys.iter().all(|&key| {
            let window = Duration::from_millis(self.setup.windows[key]);
            let live = self.granted[key].iter().filter(|(at, _)| *at + window > self.limiter.now());
            let used: u64 = live.map(|(_, amount)| amount).sum();
            let in_flight = self.out.iter().filter(|(keys, _)| keys.contains(&key)).count();
            used + waiter.amount <= self.setup.limits[key] && in_flight < 2
        })
    }

    /// Drops everything, and checks that nothing is left.
    fn end(mut self) -> Result<(), TestCaseError> {
        while !(self.waiting.is_empty() && self.out.is_empty()) {
            drop(self.waiting.pop());
            drop(self.out.pop());
            self.run();
        }
        for key in KEYS {
            let stats = self.limiter.stats(key);
            prop_assert_eq!(stats.waiting, 0);
            prop_assert!(stats.limits.iter().all(|limit| limit.held == 0), "{:?}", stats);
        }
        self.clock.advance(Duration::from_secs(60));
        self.limiter.state().prune();
        prop_assert_eq!(self.limiter.state().keys().len(), 0, "a queue or a claim is left");
        Ok(())
    }
}

/// Runs a property on 100,000 cases, or on 3,000 in a short run.
fn check<T: std::fmt::Debug>(
    cases: impl Strategy<Value = T>,
    property: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let cases_run = full_or(100_000, 3_000);
    let config =
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases_run) };
    let result = TestRunner::new(config).run(&cases, property);
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

/// P5: without priorities and flows, requests and gates of one key are admitted in order of arrival, each as
/// soon as it is the first and fits.
#[test]
fn p5_requests_and_gates_are_admitted_in_order_of_arrival() {
    check(setups(14), |setup| {
        let mut world = World::new(setup.clone());
        for step in &setup.steps {
            let step = Step { keys: vec![0], ..step.clone() };
            world.take(&step, false, |world| {
                if let Some(first) = world.waiting.first() {
                    prop_assert!(!world.fits(first), "{} fits and waits", first.number);
                    let later = world.admitted.iter().filter(|number| **number > first.number);
                    prop_assert_eq!(later.count(), 0, "{} was passed", first.number);
                }
                Ok(())
            })?;
        }
        world.end()
    });
}

/// Without priorities and flows, a waiter waits only if it is short or an earlier one waits for one of its keys.
#[test]
fn earliest_waiter_of_all_keys_waits_only_if_short() {
    check(setups(14), |setup| {
        let mut world = World::new(setup.clone());
        for step in &setup.steps {
            world.take(step, false, |world| {
                for (at, waiter) in world.waiting.iter().enumerate() {
                    let is_first = !world.waiting[..at].iter().any(|w| w.shares_key_with(waiter));
                    prop_assert!(!is_first || !world.fits(waiter), "{} fits", waiter.number);
                }
                Ok(())
            })?;
        }
        world.end()
    });
}

/// With priorities and flows, a waiter without others at its keys waits only if it is short, and of
/// several at least one is short.
#[test]
fn waiters_with_flows_and_priorities_wait_only_for_short_ones() {
    check(setups(18), |setup| {
        let mut world = World::new(setup.clone());
        for step in &setup.steps {
            world.take(step, true, |world| {
                let (waiting, fits) = (&world.waiting, |waiter| world.fits(waiter));
                prop_assert!(waiting.is_empty() || !waiting.iter().all(fits), "all fit");
                for waiter in waiting {
                    let shared = waiting.iter().filter(|w| w.shares_key_with(waiter)).count();
                    prop_assert!(shared > 1 || !fits(waiter), "{} fits", waiter.number);
                }
                Ok(())
            })?;
        }
        world.end()
    });
}

/// Each priority with waiters has a grant per `max_starvation`, one largest refill for the current turn, and one
/// for each priority whose turn is due before.
#[test]
fn each_priority_has_a_grant_per_starvation_time() {
    let arrival = (0..4_u32, 1..4_u64, 0..3_usize, 0..2_usize);
    check(proptest::collection::vec(arrival, 1..60), |arrivals| {
        let clock = ManualClock::new();
        let starvation = Duration::from_millis(500);
        let limit = Limit::per_second(Dimension::Requests, 20).unwrap().with_burst(4);
        let quota = Quota::new().limit(limit).with_algorithm(Algorithm::TokenBucket);
        let limiter = builder().clock(clock.clone()).quota("k", quota);
        let limiter =
            limiter.wait_policy(WaitPolicy::new().max_starvation(starvation)).build().unwrap();
        // The largest amount is 3, at 50 ms each.
        let bound = starvation + 3 * Duration::from_millis(150) + QUANTUM;
        let mut waiting: Vec<(usize, Acquire, Arc<WakeFlag>)> = Vec::new();
        let mut served = [limiter.now(); 3];
        let mut run = |waiting: &mut Vec<(usize, Acquire, Arc<WakeFlag>)>| {
            let now = limiter.now();
            while let Some(at) = waiting.iter().rposition(|w| w.2.0.swap(false, Ordering::Relaxed))
            {
                let (priority, acquire, flag) = &mut waiting[at];
                let waker = Waker::from(Arc::clone(flag));
                if let Poll::Ready(permit) =
                    Pin::new(acquire).poll(&mut Context::from_waker(&waker))
                {
                    served[*priority] = now;
                    permit.unwrap().settle(&Cost::new().requests(1));
                    drop(waiting.remove(at));
                }
            }
            for (priority, served) in served.iter_mut().enumerate() {
                let is_waiting = waiting.iter().any(|waiter| waiter.0 == priority);
                *served = if is_waiting { *served } else { now };
                prop_assert!(now - *served <= bound, "priority {} has starved", priority);
            }
            Ok(())
        };
        for (after, amount, priority, flow) in arrivals {
            for _ in 0..after {
                clock.advance(QUANTUM);
                run(&mut waiting)?;
            }
            let acquire = limiter.acquire("k", &Cost::new().requests(amount));
            let acquire = acquire.priority(Priority::new(priority as i8)).flow(KEYS[flow]);
            waiting.push((priority, acquire, Arc::new(WakeFlag(AtomicBool::new(true)))));
            run(&mut waiting)?;
        }
        while !waiting.is_empty() {
            clock.advance(QUANTUM);
            run(&mut waiting)?;
        }
        Ok(())
    });
}

#[test]
fn waiter_that_is_late_after_two_standstills_is_woken() {
    let clock = ManualClock::new();
    let limiter =
        builder().clock(clock.clone()).quota("k", Quota::new().concurrency(1)).build().unwrap();
    let held = limiter.try_acquire("k", &Cost::new()).unwrap();
    let flag = Arc::new(WakeFlag(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut cx = Context::from_waker(&waker);
    let [mut first, mut second] = [(); 2].map(|()| limiter.acquire("k", &Cost::new()));
    assert!(Pin::new(&mut first).poll(&mut cx).is_pending());
    assert!(Pin::new(&mut second).poll(&mut cx).is_pending());
    for late in [&mut second, &mut first] {
        clock.advance(Duration::from_millis(400));
        assert!(Pin::new(late).poll(&mut cx).is_pending());
    }
    drop(second);
    flag.0.store(false, Ordering::Relaxed);
    drop(held);
    assert!(flag.0.load(Ordering::Relaxed));
}
