//! Collected changes equal the amounts taken, and a limiter that applies them is never ahead of a
//! limiter that did all the work itself.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline::limiter::{Builder, KeyChanges, Limiter, ManualClock, Permit};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Cost, Dimension, Quota, Usage};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::builder;
use paceline_limiter::seam;
use paceline_testing::full::full_or;

#[derive(Debug, Clone)]
enum Action {
    Reserve(u64),
    Settle(usize, u64),
    Release(usize),
    Record(u64),
    Reset,
    ChangeQuota,
    Collect,
}

#[derive(Debug, Clone)]
struct Step {
    /// Milliseconds that pass before the action.
    after: u64,
    /// The limiter, out of two, that acts.
    index: usize,
    action: Action,
}

fn steps(changes: bool) -> impl Strategy<Value = Vec<Step>> {
    let action = prop_oneof![
        6 => (0..900_u64).prop_map(Action::Reserve),
        5 => (0..8_usize, 0..900_u64).prop_map(|(which, actual)| Action::Settle(which, actual)),
        2 => (0..8_usize).prop_map(Action::Release),
        1 => (0..900_u64).prop_map(Action::Record),
        1 => Just(if changes { Action::Reset } else { Action::Collect }),
        1 => Just(if changes { Action::ChangeQuota } else { Action::Collect }),
        2 => Just(Action::Collect),
    ];
    let step = (0..4_000_u64, 0..2_usize, action);
    let step = step.prop_map(|(after, index, action)| Step { after, index, action });
    proptest::collection::vec(step, 1..60)
}

/// The algorithm and the time of charging of the two limits.
#[derive(Debug, Clone, Copy)]
struct Variant {
    algorithm: Algorithm,
    /// True if tokens are held until the end; false if they are charged when sent.
    holds: bool,
}

impl Variant {
    fn limiter(self, clock: &ManualClock) -> Limiter {
        let start = |builder: Builder| if self.holds { builder } else { builder.provider(OPENAI) };
        let limiter = start(builder()).quota("gpt-4o", self.quota(false)).clock(clock.clone());
        limiter.build().unwrap()
    }

    fn quota(self, other: bool) -> Quota {
        let more = u64::from(other) * 7;
        let quota = Quota::new().rpm(400 + more).tpm(20_000 + more).concurrency(40 + more);
        quota.with_algorithm(self.algorithm)
    }
}

fn variants(algorithms: &'static [Algorithm]) -> impl Strategy<Value = Variant> {
    (proptest::sample::select(algorithms), any::<bool>())
        .prop_map(|(algorithm, holds)| Variant { algorithm, holds })
}

/// The amounts taken since the last reset, and the amounts reported by the limiter.
#[derive(Debug, Default)]
struct Expected {
    taken: BTreeMap<Dimension, i64>,
    reported: BTreeMap<Dimension, i64>,
    reported_held: BTreeMap<Dimension, u64>,
    resets: u64,
}

impl Expected {
    fn take(&mut self, dimension: Dimension, amount: u64, sign: i64) {
        *self.taken.entry(dimension).or_default() += i64::try_from(amount).unwrap() * sign;
    }

    fn report(&mut self, changes: &[KeyChanges]) {
        for change in changes {
            if change.reset_at.is_some() {
                self.reported.clear();
            }
            for bucket in &change.buckets {
                let sum: i64 = bucket.taken.iter().map(|(_, amount)| amount).sum();
                *self.reported.entry(bucket.dimension.clone()).or_default() += sum;
                self.reported_held.insert(bucket.dimension.clone(), bucket.held);
            }
        }
    }

    fn check(&self, variant: Variant, open: &[(Permit, u64, u64)]) {
        for dimension in [Dimension::Requests, Dimension::Tokens] {
            let sum =
                |expected: &BTreeMap<_, _>| expected.get(&dimension).copied().unwrap_or_default();
            assert_eq!(sum(&self.reported), sum(&self.taken), "{dimension}");
        }
        let held = |dimension| self.reported_held.get(&dimension).copied().unwrap_or_default();
        let tokens: u64 = open.iter().map(|(_, tokens, _)| tokens).sum();
        assert_eq!(held(Dimension::Tokens), if variant.holds { tokens } else { 0 });
        assert_eq!(held(Dimension::Concurrency), open.len() as u64);
    }
}

/// A limiter, its open permits (reserved tokens, number of resets before) and the changes expected
/// of it.
struct Party {
    limiter: Limiter,
    open: Vec<(Permit, u64, u64)>,
    expected: Expected,
    quota_changed: bool,
}

impl Party {
    fn new(limiter: Limiter) -> Self {
        Self { limiter, open: Vec::new(), expected: Expected::default(), quota_changed: false }
    }

    fn act(&mut self, variant: Variant, action: &Action) {
        match *action {
            Action::Reserve(tokens) => self.reserve(variant, tokens),
            Action::Settle(which, _) | Action::Release(which) if which >= self.open.len() => {}
            Action::Settle(which, actual) => self.end(variant, which, Some(actual)),
            Action::Release(which) => self.end(variant, which, None),
            Action::Record(tokens) => {
                self.limiter.record("gpt-4o", &Usage { input: tokens, ..Usage::default() });
                self.expected.take(Dimension::Requests, 1, 1);
                self.expected.take(Dimension::Tokens, tokens, 1);
            }
            Action::Reset => {
                self.limiter.reset("gpt-4o");
                self.expected.taken.clear();
                self.expected.resets += 1;
            }
            Action::ChangeQuota => {
                self.quota_changed = !self.quota_changed;
                self.limiter.quotas().set("gpt-4o", &variant.quota(self.quota_changed)).unwrap();
            }
            Action::Collect => {}
        }
    }

    fn reserve(&mut self, variant: Variant, tokens: u64) {
        let cost = Cost::new().tokens(tokens);
        let Ok(permit) = self.limiter.try_acquire("gpt-4o", &cost) else { return };
        self.expected.take(Dimension::Requests, 1, 1);
        self.expected.take(Dimension::Tokens, if variant.holds { 0 } else { tokens }, 1);
        self.open.push((permit, tokens, self.expected.resets));
    }

    fn end(&mut self, variant: Variant, which: usize, actual: Option<u64>) {
        let (permit, tokens, resets) = self.open.swap_remove(which);
        let same = resets == self.expected.resets;
        match actual {
            Some(actual) => permit.settle(&Cost::new().tokens(actual)),
            None => permit.release(),
        }
        if actual.is_none() && same {
            self.expected.take(Dimension::Requests, 1, -1);
        }
        if !variant.holds && same {
            self.expected.take(Dimension::Tokens, tokens, -1);
        }
        if variant.holds || same {
            self.expected.take(Dimension::Tokens, actual.unwrap_or(0), 1);
        }
    }
}

#[test]
fn collected_changes_equal_taken_and_held_amounts() {
    let property = |(variant, steps): (Variant, Vec<Step>)| {
        let clock = ManualClock::new();
        let mut party = Party::new(variant.limiter(&clock));
        seam::track(&party.limiter);
        for step in &steps {
            clock.advance(Duration::from_millis(step.after));
            party.act(variant, &step.action);
            if let Action::Collect = step.action {
                party.expected.report(&seam::collect_changes(&party.limiter));
                party.expected.check(variant, &party.open);
            }
        }
        party.expected.report(&seam::collect_changes(&party.limiter));
        party.expected.check(variant, &party.open);
        Ok(())
    };
    TestRunner::new(config()).run(&(variants(&ALGORITHMS), steps(true)), property).unwrap();
}

/// True if the action gives equal results on both sides. A token bucket refunds less after a
/// refill, and a refund netted to zero before collection is not reported, so actions that refund
/// are left out. (A window that starts at its first use is reported one interval late and is not
/// compared.) A sliding window has no entry for a reservation of zero: a later charge counts with
/// the next entry locally, but by its own, earlier time on the other side.
fn is_comparable(variant: Variant, party: &Party, action: &Action) -> bool {
    match (variant.algorithm, action) {
        (Algorithm::SlidingWindow, &Action::Settle(which, _)) if !variant.holds => {
            party.open.get(which).is_none_or(|(_, reserved, _)| *reserved > 0)
        }
        (Algorithm::SlidingWindow, _) => true,
        (_, Action::Release(_)) => false,
        (_, &Action::Settle(which, actual)) if !variant.holds => {
            party.open.get(which).is_none_or(|(_, reserved, _)| actual >= *reserved)
        }
        _ => true,
    }
}

#[test]
fn limiter_applying_changes_is_never_ahead_of_single_limiter() {
    let property = |(variant, steps): (Variant, Vec<Step>)| {
        let clock = ManualClock::new();
        let new = || Party::new(variant.limiter(&clock));
        let (mut both, each) = ([new(), new()], new().limiter);
        let mut all = [Party::new(each.clone()), Party::new(each.clone())];
        both.iter().for_each(|party| seam::track(&party.limiter));
        for Step { after, index, action } in steps.iter().chain([&LAST]) {
            clock.advance(Duration::from_millis(*after));
            let fits_now = |limiter: &Limiter, tokens: u64| {
                limiter.decide("gpt-4o", &Cost::new().tokens(tokens)).is_allowed()
            };
            let fits = match action {
                Action::Reserve(tokens) => {
                    fits_now(&both[*index].limiter, *tokens)
                        && fits_now(&all[*index].limiter, *tokens)
                }
                action => is_comparable(variant, &both[*index], action),
            };
            if fits {
                both[*index].act(variant, action);
                all[*index].act(variant, action);
            }
            if let Action::Collect = action {
                let changes = [0, 1].map(|at: usize| seam::collect_changes(&both[at].limiter));
                seam::apply_changes(&both[1].limiter, &changes[0]);
                seam::apply_changes(&both[0].limiter, &changes[1]);
                both.iter().for_each(|party| assert_not_ahead(&party.limiter, &each));
            }
        }
        Ok(())
    };
    TestRunner::new(config()).run(&(variants(&ALGORITHMS[..2]), steps(false)), property).unwrap();
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(20_000, 2_000))
    }
}

fn assert_not_ahead(limiter: &Limiter, all: &Limiter) {
    let pairs = limiter.stats("gpt-4o").limits.into_iter().zip(all.stats("gpt-4o").limits);
    for (mine, whole) in pairs {
        assert!(mine.available <= whole.available, "{mine:?} is ahead of {whole:?}");
    }
}

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];

const LAST: Step = Step { after: 0, index: 0, action: Action::Collect };
