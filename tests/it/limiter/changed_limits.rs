//! Limits of any form that are replaced by others at any time, against a log of what was admitted.

use std::time::Duration;

use paceline::Timestamp;
use paceline::limiter::{Limiter, ManualClock, Permit};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Window};
use proptest::prelude::*;

use super::builder;
use paceline_testing::full::full_or;

/// A limit: its algorithm, the window in seconds, and the amount.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Form {
    algorithm: Algorithm,
    seconds: u64,
    amount: u64,
}

#[derive(Debug, Clone)]
enum Step {
    /// Replaces the limits of both dimensions.
    Change(Vec<Form>, Vec<Form>),
    /// Sends a request of these amounts.
    Send(u64, u64),
    /// Settles a permit with a part of its tokens, in percent.
    Settle(usize, u64),
    Release(usize),
}

/// Requests are charged when they are sent, tokens when the request ends.
const DIMENSIONS: [Dimension; 2] = [Dimension::Requests, Dimension::Tokens];

/// Usage of one dimension, and its limits with the time since which they know of all usage, and the time of the last
/// change that concerned their form.
#[derive(Default)]
struct Ledger {
    /// Times, amounts, and the number of changes before.
    log: Vec<(u64, u64, usize)>,
    changes: usize,
    limits: Vec<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    form: Form,
    /// In milliseconds.
    since: u64,
    changed_at: u64,
    /// The number of that change.
    change: usize,
    /// The largest amount of the form since then, which the window before may have admitted.
    most: u64,
    /// `true` if more was used before the change than a bucket can owe.
    is_capped: bool,
}

impl Form {
    fn limit(self, dimension: Dimension) -> Option<Limit> {
        let window = Window::new(Duration::from_secs(self.seconds)).unwrap();
        Limit::new(dimension, self.amount, window).map(|limit| limit.with_algorithm(self.algorithm))
    }

    fn millis(self) -> u64 {
        self.seconds * 1_000
    }

    fn is_same_form(self, other: Self) -> bool {
        (self.algorithm, self.seconds) == (other.algorithm, other.seconds)
    }
}

impl Ledger {
    fn add(&mut self, amount: u64, now: u64) {
        self.log.push((now, amount, self.changes));
    }

    fn used(&self, after: u64, until: u64) -> u64 {
        let counts = |(at, ..): &&(u64, u64, usize)| *at > after && *at <= until;
        self.log.iter().filter(counts).map(|(_, amount, _)| amount).sum()
    }

    fn change(&mut self, forms: &[Form], now: u64) {
        let old = std::mem::take(&mut self.limits);
        self.changes += 1;
        let change = self.changes;
        let is_kept = |old: &Known| forms.iter().any(|form| form.is_same_form(old.form));
        let is_replaced = old.iter().any(|old| !is_kept(old));
        let known = |form: Form| {
            if let Some(same) = old.iter().find(|old| old.form.is_same_form(form)) {
                let is_new_rate = form.algorithm == Algorithm::TokenBucket && form != same.form;
                let since = if is_new_rate { now } else { same.since };
                return Known { form, since, most: same.most.max(form.amount), ..*same };
            }
            let reach = |old: &Known| {
                let since = if old.is_capped { old.changed_at } else { old.since };
                since.max(now.saturating_sub(old.form.millis()))
            };
            let covering: Vec<&Known> =
                old.iter().filter(|old| old.form.seconds >= form.seconds).collect();
            let longest = old.iter().max_by_key(|old| old.form.seconds);
            let since = match (is_replaced, &covering[..]) {
                (false, _) => now,
                (true, []) => longest.map_or(now, reach),
                (true, covering) => covering.iter().map(|old| reach(old)).max().unwrap_or(now),
            };
            let since = since.max(now.saturating_sub(form.millis()));
            let is_capped = form.algorithm == Algorithm::TokenBucket
                && self.used(now.saturating_sub(form.millis()), now) > 2 * form.amount;
            Known { form, since, changed_at: now, change, most: form.amount, is_capped }
        };
        self.limits = forms.iter().map(|&form| known(form)).collect();
    }

    /// Checks that an admission at `now` is within all limits, with `held` in flight.
    fn check(&self, held: u64, now: u64) {
        for known in &self.limits {
            let Known { form, since, change, most, is_capped, .. } = *known;
            let Form { algorithm, amount, .. } = form;
            let millis = form.millis();
            let begin = now.saturating_sub(millis).max(since);
            let is_earlier =
                |(at, _, changes): &(u64, u64, usize)| *at > begin && *changes < change;
            let (used, most) = match algorithm {
                Algorithm::TokenBucket => {
                    let since = if is_capped { begin } else { since };
                    for &(at, ..) in self.log.iter().filter(|(at, ..)| *at > since) {
                        let refilled = amount * (now - at);
                        let sum = self.used((at - 1).max(since), now) + held;
                        assert!(
                            sum * millis <= amount * millis + refilled,
                            "{known:?}: {sum} since {at}"
                        );
                    }
                    continue;
                }
                Algorithm::ClockWindow => {
                    (self.used((now / millis * millis).saturating_sub(1).max(since), now), amount)
                }
                Algorithm::FixedWindow if !self.log.iter().any(is_earlier) => {
                    (self.used(begin, now), most + amount)
                }
                _ => (self.used(begin, now), amount),
            };
            assert!(used + held <= most, "{known:?}: {used} and {held} at {now}, {:?}", self.log);
        }
    }
}

struct World {
    limiter: Limiter,
    clock: ManualClock,
    ledgers: [Ledger; 2],
    open: Vec<(Permit, u64, [u64; 2])>,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let limiter = builder().clock(clock.clone()).build().unwrap();
        Self { limiter, clock, ledgers: Default::default(), open: Vec::new() }
    }

    fn now(&self) -> u64 {
        use paceline::limiter::Clock;
        self.clock.now().saturating_duration_since(Timestamp::UNIX_EPOCH).as_millis() as u64
    }

    fn step(&mut self, step: &Step) {
        let now = self.now();
        match step {
            Step::Change(requests, tokens) => {
                let mut quota = Quota::new();
                for (dimension, forms) in DIMENSIONS.into_iter().zip([requests, tokens]) {
                    for form in forms {
                        quota = quota.limit(form.limit(dimension.clone()));
                    }
                }
                self.limiter.quotas().set("k", &quota).unwrap();
                self.ledgers[0].change(requests, now);
                self.ledgers[1].change(tokens, now);
            }
            &Step::Send(requests, tokens) => {
                let cost = Cost::new().requests(requests).tokens(tokens);
                let Ok(permit) = self.limiter.try_acquire("k", &cost) else { return };
                self.ledgers[0].add(requests, now);
                self.open.push((permit, now, [requests, tokens]));
                let held = self.open.iter().map(|(.., [_, tokens])| tokens).sum();
                self.ledgers[0].check(0, now);
                if tokens > 0 {
                    self.ledgers[1].check(held, now);
                }
            }
            &Step::Settle(at, percent) => {
                let Some((permit, _, [requests, tokens])) = self.take(at) else { return };
                let tokens = tokens * percent / 100;
                permit.settle(&Cost::new().requests(requests).tokens(tokens));
                self.ledgers[1].add(tokens, now);
            }
            &Step::Release(at) => {
                let Some((permit, sent, [requests, _])) = self.take(at) else { return };
                permit.release();
                let log = &mut self.ledgers[0].log;
                let entry =
                    log.iter().position(|entry| (entry.0, entry.1) == (sent, requests)).unwrap();
                log.remove(entry);
            }
        }
    }

    fn take(&mut self, at: usize) -> Option<(Permit, u64, [u64; 2])> {
        (!self.open.is_empty()).then(|| self.open.remove(at % self.open.len()))
    }

    /// After a window without traffic, windows have all of their amount; a bucket that is in debt needs longer.
    fn check_leaks(mut self, forms: [&[Form]; 2]) {
        while !self.open.is_empty() {
            self.step(&Step::Settle(0, 50));
        }
        let longest = forms.into_iter().flatten().map(|form| form.seconds).max().unwrap_or(0);
        // A fixed window rounds its end up by 8 ms at most.
        self.clock.advance(Duration::from_secs(longest) + Duration::from_millis(10));
        let limits = self.limiter.stats("k").limits;
        for (limit, form) in limits.iter().zip(forms.into_iter().flatten()) {
            let refills = form.algorithm == Algorithm::TokenBucket;
            let is_full = limit.available == form.amount;
            assert!(limit.held == 0 && (is_full || refills), "{limit:?}");
        }
        self.clock.advance(Duration::from_secs(100_000));
        let limits = self.limiter.stats("k").limits;
        assert!(limits.iter().all(|limit| limit.available == limit.limit), "{limits:?}");
    }
}

fn forms() -> impl Strategy<Value = Vec<Form>> {
    let form = (proptest::sample::select(&Algorithm::ALL[..]), 0..5_u32, 1..40_u64)
        .prop_map(|(algorithm, power, amount)| Form { algorithm, seconds: 1 << power, amount });
    proptest::collection::vec(form, 1..3).prop_map(|mut forms| {
        forms.sort_by_key(|form| form.seconds);
        forms.dedup_by_key(|form| form.seconds);
        forms
    })
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        1 => (forms(), forms()).prop_map(|(requests, tokens)| Step::Change(requests, tokens)),
        6 => (1..8_u64, 0..20_u64).prop_map(|(requests, tokens)| Step::Send(requests, tokens)),
        2 => (any::<usize>(), 0..101_u64).prop_map(|(at, percent)| Step::Settle(at, percent)),
        1 => any::<usize>().prop_map(Step::Release),
    ];
    let after = prop_oneof![3 => Just(0), 3 => 1..400_u64, 1 => 400..6_000_u64];
    proptest::collection::vec((after, step), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 3_000))
    })]

    #[test]
    fn limits_changed_at_random_are_never_exceeded(
        first in (forms(), forms()),
        steps in steps(),
    ) {
        let mut world = World::new();
        let mut last = first.clone();
        world.step(&Step::Change(first.0, first.1));
        for (after, step) in &steps {
            world.clock.advance(Duration::from_millis(*after));
            world.step(step);
            if let Step::Change(requests, tokens) = step {
                last = (requests.clone(), tokens.clone());
            }
        }
        world.check_leaks([&last.0, &last.1]);
    }
}
