//! P4 and P5 through the limiter, against an independent reference.

use paceline::Timestamp;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{Acquire, KeyStats, Limiter, ManualClock, Permit, RateLimited};
use paceline::quota::{Cost, Dimension, Limit, Quota, Window};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::builder;
use paceline_testing::full::full_or;

/// Four keys, each with a limit of requests per window (in milliseconds) and a concurrency of
/// three.
#[derive(Debug, Clone)]
struct Setup {
    limits: [u64; 4],
    windows: [u64; 4],
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    /// Milliseconds that pass before the request.
    after: u64,
    /// The keys of the request, as bits.
    keys: usize,
    amount: u64,
    /// The permit in flight that ends before the request, if any.
    ends: Option<usize>,
}

fn setups(steps: usize) -> impl Strategy<Value = Setup> {
    let step = (0..400_u64, 1..16_usize, 1..4_u64, proptest::option::of(0..4_usize))
        .prop_map(|(after, keys, amount, ends)| Step { after, keys, amount, ends });
    let limits = [1..6_u64, 1..6_u64, 1..6_u64, 1..6_u64];
    let windows = [50..2_000_u64, 50..2_000_u64, 50..2_000_u64, 50..2_000_u64];
    (limits, windows, proptest::collection::vec(step, 1..steps))
        .prop_map(|(limits, windows, steps)| Setup { limits, windows, steps })
}

/// One limiter for all cases of a property. Each case has its own keys.
struct SharedLimiter {
    limiter: Limiter,
    clock: ManualClock,
    case: Cell<u64>,
}

impl SharedLimiter {
    fn new() -> Self {
        let clock = ManualClock::new();
        let limiter = builder().clock(clock.clone()).build().unwrap();
        Self { limiter, clock, case: Cell::new(0) }
    }

    /// Returns the keys of a new case, with quotas set.
    fn case(&self, setup: &Setup) -> Case<'_> {
        self.case.set(self.case.get() + 1);
        let keys = [0, 1, 2, 3].map(|key| format!("{key}:{}", self.case.get()));
        for (key, name) in keys.iter().enumerate() {
            let window = Window::new(Duration::from_millis(setup.windows[key])).unwrap();
            let limit = Limit::new(Dimension::Requests, setup.limits[key], window).unwrap();
            self.limiter.quotas().set(name, &Quota::new().limit(limit).concurrency(3)).unwrap();
        }
        Case { shared: self, keys }
    }
}

struct Case<'a> {
    shared: &'a SharedLimiter,
    keys: [String; 4],
}

impl Case<'_> {
    fn acquire(&self, bits: usize, amount: u64) -> Acquire {
        let keys: Vec<&String> = bits_of(bits).map(|key| &self.keys[key]).collect();
        self.shared.limiter.acquire_all(&keys, &Cost::new().requests(amount))
    }

    /// Returns the statistics of the keys. An idle key may be pruned at any time and then lose its
    /// `fresh_at`, so `fresh_at` is at least now.
    fn stats(&self) -> [KeyStats; 4] {
        [0, 1, 2, 3].map(|key| {
            let (now, mut stats) =
                (self.shared.limiter.now(), self.shared.limiter.stats(&self.keys[key]));
            stats.limits.iter_mut().for_each(|limit| limit.fresh_at = limit.fresh_at.max(now));
            stats
        })
    }
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        self.keys.iter().for_each(|key| {
            self.shared.limiter.quotas().remove(key);
        });
    }
}

fn bits_of(bits: usize) -> impl Iterator<Item = usize> {
    (0..4).filter(move |key| bits >> key & 1 == 1)
}

impl Setup {
    /// Returns the largest amount that a request of these keys can reserve.
    fn least(&self, bits: usize) -> u64 {
        bits_of(bits).map(|key| self.limits[key]).min().unwrap_or(0)
    }
}

/// A reference implementation, which decides by the grants and the requests in flight alone.
#[derive(Default)]
struct Reference {
    granted: [Vec<(Timestamp, u64)>; 4],
    in_flight: [u64; 4],
}

impl Reference {
    fn fits(&self, setup: &Setup, bits: usize, amount: u64, now: Timestamp) -> bool {
        bits_of(bits).all(|key| {
            let window = Duration::from_millis(setup.windows[key]);
            let live = self.granted[key].iter().filter(|(at, _)| *at + window > now);
            let used: u64 = live.map(|(_, amount)| amount).sum();
            used + amount <= setup.limits[key] && self.in_flight[key] < 3
        })
    }

    fn grant(&mut self, bits: usize, amount: u64, now: Timestamp) {
        for key in bits_of(bits) {
            self.granted[key].push((now, amount));
            self.in_flight[key] += 1;
        }
    }

    fn end(&mut self, bits: usize) {
        bits_of(bits).for_each(|key| self.in_flight[key] -= 1);
    }
}

/// Runs a property on 100,000 cases, or on 5,000 in a short run.
fn check<T: std::fmt::Debug>(
    cases: impl Strategy<Value = T>,
    property: impl Fn(&SharedLimiter, T) -> Result<(), TestCaseError>,
) {
    let shared = SharedLimiter::new();
    let cases_run = full_or(100_000, 5_000);
    let config =
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases_run) };
    let result = TestRunner::new(config).run(&cases, |case| property(&shared, case));
    result.unwrap_or_else(|failure| panic!("{failure}"));
}

/// P4, and P2 for several keys: a request reserves all keys or none, exactly when all have
/// capacity, and a refusal names the first time at which they do.
#[test]
fn p4_several_keys_are_granted_all_or_none() {
    check(setups(8), |shared, setup| {
        let case = shared.case(&setup);
        let mut reference = Reference::default();
        let mut out: Vec<(usize, Permit)> = Vec::new();
        for step in &setup.steps {
            shared.clock.advance(Duration::from_millis(step.after));
            if let Some(ends) = step.ends.filter(|ends| *ends < out.len()) {
                reference.end(out.remove(ends).0);
            }
            let (now, before) = (shared.limiter.now(), case.stats());
            let fits = |at| reference.fits(&setup, step.keys, step.amount, at);
            match case.acquire(step.keys, step.amount).try_now() {
                Ok(permit) => {
                    prop_assert!(fits(now), "granted a request that does not fit");
                    reference.grant(step.keys, step.amount, now);
                    out.push((step.keys, permit));
                }
                Err(refused) => {
                    prop_assert!(!fits(now), "refused a request that fits: {refused}");
                    prop_assert_eq!(before, case.stats());
                    if let Wait::At(time) = refused.wait {
                        prop_assert!(
                            fits(time) && !fits(time - Duration::from_nanos(1)),
                            "{refused}"
                        );
                    }
                }
            }
        }
        Ok(())
    });
}

/// P5: requests for the same keys are granted in order of arrival.
#[test]
fn p5_grants_come_in_order_of_arrival() {
    check(setups(12), |shared, setup| {
        for (keys, order) in grants(shared, &setup, None) {
            let arrivals: Vec<usize> = order.iter().map(|(arrival, _)| *arrival).collect();
            prop_assert!(arrivals.is_sorted(), "{arrivals:?} of keys {keys:b}");
        }
        Ok(())
    });
}

/// P5: a request that first names a key without capacity does not affect other requests: they are
/// granted the same, at the same times.
#[test]
fn p5_request_blocked_on_a_key_delays_no_other_request() {
    check(setups(12), |shared, setup| {
        let used_up = 0;
        let mut without = setup.clone();
        for step in &mut without.steps {
            // Time passes and permits end as before, but the request is not made.
            step.keys = if step.keys >> used_up & 1 == 1 { 0 } else { step.keys };
        }
        let with = grants(shared, &setup, Some(used_up));
        prop_assert_eq!(with, grants(shared, &without, Some(used_up)));
        Ok(())
    });
}

/// Arrival numbers and times of the granted requests, in order of grant, by the keys of a request.
type Grants = BTreeMap<usize, Vec<(usize, Duration)>>;

/// Runs all steps, polls the waiting requests every 50 ms, the last one first, and returns the
/// grants. The key `used_up` never has capacity.
fn grants(shared: &SharedLimiter, setup: &Setup, used_up: Option<usize>) -> Grants {
    let SharedLimiter { limiter, clock, .. } = shared;
    let (case, begin) = (shared.case(setup), limiter.now());
    if let Some(key) = used_up {
        let hour = RateLimited::new(Some(Duration::from_secs(3_600)));
        limiter.feedback().rate_limited(&case.keys[key], &hour);
    }
    let mut waiting: Vec<(usize, usize, Acquire)> = Vec::new();
    let (mut grants, mut out) = (Grants::new(), Vec::new());
    for (arrival, step) in setup.steps.iter().enumerate() {
        for _ in 0..step.after.div_ceil(50) {
            clock.advance(Duration::from_millis(50));
            poll_all(&mut waiting, &mut grants, &mut out, limiter.now() - begin);
        }
        if let Some(ends) = step.ends.filter(|ends| *ends < out.len()) {
            drop(out.remove(ends));
        }
        if step.keys != 0 && step.amount <= setup.least(step.keys) {
            waiting.push((step.keys, arrival, case.acquire(step.keys, step.amount)));
        }
        poll_all(&mut waiting, &mut grants, &mut out, limiter.now() - begin);
    }
    grants
}

/// Records whether it was woken.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls all waiting requests until no waker is called.
fn poll_all(
    waiting: &mut Vec<(usize, usize, Acquire)>,
    grants: &mut Grants,
    out: &mut Vec<Permit>,
    now: Duration,
) {
    let flag = Arc::new(WakeFlag::default());
    let waker = Waker::from(Arc::clone(&flag));
    loop {
        for at in (0..waiting.len()).rev() {
            let (keys, arrival, acquire) = &mut waiting[at];
            let mut cx = Context::from_waker(&waker);
            if let Poll::Ready(result) = Pin::new(acquire).poll(&mut cx) {
                if let Ok(permit) = result {
                    grants.entry(*keys).or_default().push((*arrival, now));
                    out.push(permit);
                }
                drop(waiting.remove(at));
            }
        }
        if !flag.0.swap(false, Ordering::Relaxed) {
            return;
        }
    }
}
