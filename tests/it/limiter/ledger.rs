//! What is collected of a limiter is what it did, whatever it did; and whoever takes that over is
//! never ahead of a limiter that did all of it itself.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tollgate::limiter::{Builder, KeyChanges, Limiter, ManualClock, Permit};
use tollgate::provider::OPENAI;
use tollgate::quota::{Algorithm, Cost, Dimension, Quota, Usage};

use super::builder;
use tollgate_testing::full::full_or;

#[derive(Debug, Clone)]
enum Deed {
    Reserve(u64),
    Settle(usize, u64),
    Release(usize),
    Record(u64),
    Reset,
    Requote,
    Collect,
}

#[derive(Debug, Clone)]
struct Step {
    /// Milliseconds that pass first.
    after: u64,
    /// Which of two limiters.
    who: usize,
    deed: Deed,
}

fn steps(changes: bool) -> impl Strategy<Value = Vec<Step>> {
    let deed = prop_oneof![
        6 => (0..900_u64).prop_map(Deed::Reserve),
        5 => (0..8_usize, 0..900_u64).prop_map(|(which, actual)| Deed::Settle(which, actual)),
        2 => (0..8_usize).prop_map(Deed::Release),
        1 => (0..900_u64).prop_map(Deed::Record),
        1 => Just(if changes { Deed::Reset } else { Deed::Collect }),
        1 => Just(if changes { Deed::Requote } else { Deed::Collect }),
        2 => Just(Deed::Collect),
    ];
    let step = (0..4_000_u64, 0..2_usize, deed);
    let step = step.prop_map(|(after, who, deed)| Step { after, who, deed });
    proptest::collection::vec(step, 1..60)
}

/// How the two limits are counted.
#[derive(Debug, Clone, Copy)]
struct Manner {
    algorithm: Algorithm,
    /// Whether tokens are held until the end, or charged when they are sent.
    holds: bool,
}

impl Manner {
    fn limiter(self, clock: &ManualClock) -> Limiter {
        let start = |builder: Builder| if self.holds { builder } else { builder.provider(OPENAI) };
        let limiter = start(builder()).quota("k", self.quota(false)).clock(clock.clone());
        limiter.build().unwrap()
    }

    fn quota(self, other: bool) -> Quota {
        let more = u64::from(other) * 7;
        let quota = Quota::new().rpm(400 + more).tpm(20_000 + more).concurrency(40 + more);
        quota.with_algorithm(self.algorithm)
    }
}

fn manners(algorithms: &'static [Algorithm]) -> impl Strategy<Value = Manner> {
    (proptest::sample::select(algorithms), any::<bool>())
        .prop_map(|(algorithm, holds)| Manner { algorithm, holds })
}

/// What must have been taken and held since the last reset, and what is said to have been.
#[derive(Debug, Default)]
struct Book {
    taken: BTreeMap<Dimension, i64>,
    told: BTreeMap<Dimension, i64>,
    told_held: BTreeMap<Dimension, u64>,
    resets: u64,
}

impl Book {
    fn take(&mut self, dimension: Dimension, amount: u64, sign: i64) {
        *self.taken.entry(dimension).or_default() += i64::try_from(amount).unwrap() * sign;
    }

    fn hear(&mut self, changes: &[KeyChanges]) {
        for change in changes {
            if change.reset_at.is_some() {
                self.told.clear();
            }
            for bucket in &change.buckets {
                let sum: i64 = bucket.taken.iter().map(|(_, amount)| amount).sum();
                *self.told.entry(bucket.dimension.clone()).or_default() += sum;
                self.told_held.insert(bucket.dimension.clone(), bucket.held);
            }
        }
    }

    fn check(&self, manner: Manner, open: &[(Permit, u64, u64)]) {
        for dimension in [Dimension::Requests, Dimension::Tokens] {
            let sum = |book: &BTreeMap<_, _>| book.get(&dimension).copied().unwrap_or_default();
            assert_eq!(sum(&self.told), sum(&self.taken), "{dimension}");
        }
        let held = |dimension| self.told_held.get(&dimension).copied().unwrap_or_default();
        let tokens: u64 = open.iter().map(|(_, tokens, _)| tokens).sum();
        assert_eq!(held(Dimension::Tokens), if manner.holds { tokens } else { 0 });
        assert_eq!(held(Dimension::Concurrency), open.len() as u64);
    }
}

/// A limiter, its permits (with what they reserved, and after how many resets) and what it should say.
struct Party {
    limiter: Limiter,
    open: Vec<(Permit, u64, u64)>,
    book: Book,
    requoted: bool,
}

impl Party {
    fn new(limiter: Limiter) -> Self {
        Self { limiter, open: Vec::new(), book: Book::default(), requoted: false }
    }

    fn act(&mut self, manner: Manner, deed: &Deed) {
        match *deed {
            Deed::Reserve(tokens) => self.reserve(manner, tokens),
            Deed::Settle(which, _) | Deed::Release(which) if which >= self.open.len() => {}
            Deed::Settle(which, actual) => self.end(manner, which, Some(actual)),
            Deed::Release(which) => self.end(manner, which, None),
            Deed::Record(tokens) => {
                self.limiter.record("k", &Usage { input: tokens, ..Usage::default() });
                self.book.take(Dimension::Requests, 1, 1);
                self.book.take(Dimension::Tokens, tokens, 1);
            }
            Deed::Reset => {
                self.limiter.reset("k");
                self.book.taken.clear();
                self.book.resets += 1;
            }
            Deed::Requote => {
                self.requoted = !self.requoted;
                self.limiter.quotas().set("k", &manner.quota(self.requoted));
            }
            Deed::Collect => {}
        }
    }

    fn reserve(&mut self, manner: Manner, tokens: u64) {
        let cost = Cost::new().tokens(tokens);
        let Ok(permit) = self.limiter.try_acquire("k", &cost) else { return };
        self.book.take(Dimension::Requests, 1, 1);
        self.book.take(Dimension::Tokens, if manner.holds { 0 } else { tokens }, 1);
        self.open.push((permit, tokens, self.book.resets));
    }

    fn end(&mut self, manner: Manner, which: usize, actual: Option<u64>) {
        let (permit, tokens, resets) = self.open.swap_remove(which);
        let same = resets == self.book.resets;
        match actual {
            Some(actual) => permit.settle(&Cost::new().tokens(actual)),
            None => permit.release(),
        }
        if actual.is_none() && same {
            self.book.take(Dimension::Requests, 1, -1);
        }
        if !manner.holds && same {
            self.book.take(Dimension::Tokens, tokens, -1);
        }
        if manner.holds || same {
            self.book.take(Dimension::Tokens, actual.unwrap_or(0), 1);
        }
    }
}

#[test]
fn what_is_collected_is_what_was_taken_and_held() {
    let property = |(manner, steps): (Manner, Vec<Step>)| {
        let clock = ManualClock::new();
        let mut party = Party::new(manner.limiter(&clock));
        party.limiter.state().track();
        for step in &steps {
            clock.advance(Duration::from_millis(step.after));
            party.act(manner, &step.deed);
            if let Deed::Collect = step.deed {
                party.book.hear(&party.limiter.state().collect_changes());
                party.book.check(manner, &party.open);
            }
        }
        party.book.hear(&party.limiter.state().collect_changes());
        party.book.check(manner, &party.open);
        Ok(())
    };
    TestRunner::new(config()).run(&(manners(&ALGORITHMS), steps(true)), property).unwrap();
}

/// What a token bucket gets back is less what has refilled since, and netted before anybody hears of
/// it that is nothing: so none gives anything back here. (A window that starts at its first use hears of
/// that an interval late, and isn't compared.) A sliding window has no entry for who took nothing: what
/// that one is charged after all counts with the next entry, and those who take it over count it by its
/// own time, which is over sooner.
fn is_comparable(manner: Manner, party: &Party, deed: &Deed) -> bool {
    match (manner.algorithm, deed) {
        (Algorithm::SlidingWindow, &Deed::Settle(which, _)) if !manner.holds => {
            party.open.get(which).is_none_or(|(_, reserved, _)| *reserved > 0)
        }
        (Algorithm::SlidingWindow, _) => true,
        (_, Deed::Release(_)) => false,
        (_, &Deed::Settle(which, actual)) if !manner.holds => {
            party.open.get(which).is_none_or(|(_, reserved, _)| actual >= *reserved)
        }
        _ => true,
    }
}

#[test]
fn whoever_takes_changes_over_is_never_ahead_of_one_that_did_it_all() {
    let property = |(manner, steps): (Manner, Vec<Step>)| {
        let clock = ManualClock::new();
        let new = || Party::new(manner.limiter(&clock));
        let (mut both, each) = ([new(), new()], new().limiter);
        let mut all = [Party::new(each.clone()), Party::new(each.clone())];
        both.iter().for_each(|party| party.limiter.state().track());
        for Step { after, who, deed } in steps.iter().chain([&LAST]) {
            clock.advance(Duration::from_millis(*after));
            let roomy = |limiter: &Limiter, tokens: u64| {
                limiter.decide("k", &Cost::new().tokens(tokens)).is_allowed()
            };
            let fits = match deed {
                Deed::Reserve(tokens) => {
                    roomy(&both[*who].limiter, *tokens) && roomy(&all[*who].limiter, *tokens)
                }
                deed => is_comparable(manner, &both[*who], deed),
            };
            if fits {
                both[*who].act(manner, deed);
                all[*who].act(manner, deed);
            }
            if let Deed::Collect = deed {
                let changes = [0, 1].map(|at: usize| both[at].limiter.state().collect_changes());
                both[1].limiter.state().apply_changes(&changes[0]);
                both[0].limiter.state().apply_changes(&changes[1]);
                both.iter().for_each(|party| never_ahead(&party.limiter, &each));
            }
        }
        Ok(())
    };
    TestRunner::new(config()).run(&(manners(&ALGORITHMS[..2]), steps(false)), property).unwrap();
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(20_000, 2_000))
    }
}

fn never_ahead(limiter: &Limiter, all: &Limiter) {
    let pairs = limiter.stats("k").limits.into_iter().zip(all.stats("k").limits);
    for (mine, whole) in pairs {
        assert!(mine.available <= whole.available, "{mine:?} is ahead of {whole:?}");
    }
}

const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];

const LAST: Step = Step { after: 0, who: 0, deed: Deed::Collect };
