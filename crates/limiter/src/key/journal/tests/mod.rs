//! The changes of one key for a store, without a limiter and without a store.

use crate::timestamp::Timestamp;
use std::sync::Arc;
use std::time::Duration;

use paceline_testing::full::full_or;
use proptest::prelude::*;

use super::*;
use crate::plan::ChargedAtSend;
use crate::quota::{Algorithm, Margin, Quota};

mod applied;
mod exchange;

const S: Duration = Duration::from_secs(1);
/// The start of a minute.
const START: Timestamp = Timestamp::from_unix_secs(86_400 * 100);

/// Returns a plan whose tokens are held until the end if `is_held`, or charged when they are sent.
fn plan(quota: &Quota, is_held: bool, version: u32) -> Plan {
    let provider = (!is_held).then(ChargedAtSend::provider);
    Plan::new(quota, provider.as_ref(), Margin::NONE, 0, version)
}

/// One of the limiters that share a store: the limits of a key and their journal.
#[derive(Debug)]
struct Party {
    limits: Limits,
    journal: Journal,
    open: Vec<Permit>,
    round: u64,
}

/// A reservation in flight.
#[derive(Debug, Clone)]
struct Permit {
    version: u32,
    at: Timestamp,
    reserved: Cost,
    /// The input tokens that were settled early.
    early: Option<u64>,
}

impl Party {
    fn new(plan: Plan) -> Self {
        let limits = Limits::new(Arc::new(plan));
        let journal = Journal::new(&limits, START);
        Self { limits, journal, open: Vec::new(), round: 0 }
    }

    fn of(quota: Quota, is_held: bool) -> Self {
        Self::new(plan(&quota.with_algorithm(Algorithm::SlidingWindow), is_held, 1))
    }

    fn reserve(&mut self, cost: &Cost, now: Timestamp) -> Permit {
        self.limits.commit(cost, now);
        self.journal.reserved(&self.limits, cost, now);
        let version = self.limits.plan.version;
        Permit { version, at: now, reserved: cost.clone(), early: None }
    }

    /// Ends a reservation as a permit does: amounts settled early are no longer part of it.
    fn end(&mut self, permit: &Permit, charged: Option<&Cost>, now: Timestamp) {
        let (mut reserved, mut charged) = (permit.reserved.clone(), charged.cloned());
        if permit.early.is_some() {
            reserved.set(&Dimension::InputTokens, 0);
            if let Some(charged) = &mut charged {
                charged.set(&Dimension::InputTokens, 0);
            }
        }
        let granted = Granted { version: permit.version, at: permit.at, cost: &reserved };
        self.limits.end(granted, charged.as_ref(), now);
        self.journal.ended(&self.limits, granted, charged.as_ref(), now);
    }

    fn settle_early(&mut self, permit: &mut Permit, input: u64, now: Timestamp) {
        let charged = permit.reserved.clone().input_tokens(input);
        let granted = Granted { version: permit.version, at: now, cost: &permit.reserved };
        let rules = self.limits.settle_early(granted, &Dimension::InputTokens, &charged, now);
        self.journal.settled_early(&self.limits, &rules, &charged, now);
        permit.early = Some(input);
    }

    fn charge(&mut self, cost: &Cost, now: Timestamp) {
        self.limits.charge(cost, now);
        self.journal.charged(&self.limits, cost, now);
    }

    fn reset(&mut self, now: Timestamp) {
        let plan = self.limits.plan.renewed(self.limits.plan.version + 1);
        self.limits.clear(Arc::new(plan));
        self.journal.reset(now);
    }

    fn follow(&mut self, plan: &Plan, now: Timestamp) {
        let plan = plan.succeed(&self.limits.plan, self.limits.plan.version + 1);
        self.journal.follow(&mut self.limits, &plan, now);
        self.limits = self.limits.carried(Arc::new(plan), now);
        self.journal.hold_for_others(&mut self.limits);
    }

    fn collect(&mut self) -> Option<KeyChanges> {
        self.round += 1;
        self.journal.collect(&"k".into(), &self.limits, false)
    }

    fn apply(&mut self, changes: &KeyChanges, now: Timestamp) {
        if let Some(reset_at) = changes.reset_at {
            let plan = self.limits.plan.renewed(self.limits.plan.version + 1);
            self.limits.clear(Arc::new(plan));
            self.journal.apply_reset(&mut self.limits, reset_at, now);
        }
        for bucket in &changes.buckets {
            self.journal.apply(&mut self.limits, bucket, self.round, now);
        }
    }

    /// Returns the amounts used and held, by rule.
    fn used_and_held(&self, now: Timestamp) -> Vec<(u64, u64)> {
        let levels = self.limits.iter().map(|(rule, bucket)| bucket.level(rule, now));
        levels.map(|level| (level.used, level.held)).collect()
    }
}

/// Returns the amounts taken and held of one dimension, as collected.
fn reported(
    changes: Option<&KeyChanges>,
    dimension: &Dimension,
) -> Option<(Vec<(Timestamp, i64)>, u64)> {
    let of = |bucket: &&BucketChanges| bucket.dimension == *dimension;
    let bucket = changes?.buckets.iter().find(of)?;
    Some((bucket.taken.clone(), bucket.held))
}

fn tokens(n: u64) -> Cost {
    Cost::new().tokens(n)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(50_000, 3_000))
    }
}

#[test]
fn reservation_settled_before_collection_is_reported_net() {
    let mut party = Party::of(Quota::new().rpm(10).tpm(100), false);
    let permit = party.reserve(&tokens(40), START);
    party.end(&permit, Some(&tokens(25)), START + 5 * S);
    let changes = party.collect();
    let of = |dimension| reported(changes.as_ref(), &dimension);
    assert_eq!(of(Dimension::Requests), Some((vec![(START, 1)], 0)));
    assert_eq!(of(Dimension::Tokens), Some((vec![(START, 25)], 0)));
}

#[test]
fn amount_returned_after_collection_is_reported_at_charge_time() {
    let mut party = Party::of(Quota::new().rpm(10).tpm(100), false);
    let permit = party.reserve(&tokens(40), START);
    assert!(party.collect().is_some());
    party.reserve(&tokens(7), START + 4 * S);
    party.end(&permit, Some(&tokens(25)), START + 5 * S);
    let taken = vec![(START, -15), (START + 4 * S, 7)];
    assert_eq!(reported(party.collect().as_ref(), &Dimension::Tokens), Some((taken, 0)));
}

#[test]
fn excess_over_a_reservation_is_reported_as_taken() {
    let excess = |algorithm| {
        let quota = Quota::new().tpm(100).with_algorithm(algorithm);
        let mut party = Party::new(plan(&quota, false, 1));
        let permit = party.reserve(&tokens(40), START);
        party.collect();
        party.end(&permit, Some(&tokens(45)), START + 5 * S);
        reported(party.collect().as_ref(), &Dimension::Tokens).unwrap().0
    };
    assert_eq!(excess(Algorithm::TokenBucket), [(START + 5 * S, 5)]);
    assert_eq!(excess(Algorithm::SlidingWindow), [(START, 5)]);
}

/// The next window starts within the same part of a minute as the request was sent.
#[test]
fn amount_returned_of_earlier_window_keeps_next_window() {
    let quota = Quota::new().tpm(100).with_algorithm(Algorithm::FixedWindow);
    let mut party = Party::new(plan(&quota, false, 1));
    let (first, sent, next) = (START - 60 * S + S / 2, START + S / 5, START + S * 3 / 5);
    party.charge(&tokens(5), first);
    let permit = party.reserve(&tokens(40), sent);
    party.charge(&tokens(7), next);
    party.end(&permit, Some(&tokens(25)), next);
    let taken = vec![(first, 45), (sent, -15), (next, 7)];
    assert_eq!(reported(party.collect().as_ref(), &Dimension::Tokens), Some((taken, 0)));
}

#[test]
fn amount_held_is_reported_in_full_and_once() {
    let mut party = Party::of(Quota::new().tpm(100).concurrency(9), true);
    let first = party.reserve(&tokens(10), START);
    let of = |changes: &Option<KeyChanges>, of| reported(changes.as_ref(), &of);
    let changes = party.collect();
    assert_eq!(of(&changes, Dimension::Tokens), Some((vec![], 10)));
    assert_eq!(of(&changes, Dimension::Concurrency), Some((vec![], 1)));
    party.reserve(&tokens(20), START + S);
    assert_eq!(of(&party.collect(), Dimension::Tokens), Some((vec![], 30)));
    assert_eq!(party.collect(), None);
    party.end(&first, Some(&tokens(9)), START + 2 * S);
    assert_eq!(of(&party.collect(), Dimension::Tokens), Some((vec![(START + 2 * S, 9)], 20)));
    let retired = party.journal.collect(&"k".into(), &party.limits, true);
    assert_eq!(of(&retired, Dimension::Tokens), Some((vec![], 0)), "held by another key by now");
}

#[test]
fn reservation_from_before_the_journal_is_not_reported() {
    let mut party = Party::of(Quota::new().tpm(100), false);
    let permit = party.reserve(&tokens(40), START - Duration::from_nanos(1));
    party.journal = Journal::new(&party.limits, START);
    party.end(&permit, Some(&tokens(10)), START + S);
    assert_eq!(party.collect(), None);
}

#[test]
fn bucket_with_refill_is_reported_with_refill_amount() {
    let refill = |algorithm| {
        let mut party = Party::new(plan(&Quota::new().tpm(80).with_algorithm(algorithm), true, 1));
        party.charge(&tokens(1), START);
        party.collect().unwrap().buckets[0].refill
    };
    assert_eq!((refill(Algorithm::TokenBucket), refill(Algorithm::SlidingWindow)), (80, 0));
}

#[test]
fn key_is_listed_once_in_each_round() {
    let mut party = Party::of(Quota::new().tpm(100), true);
    assert!(!party.journal.take_dirty() && !party.journal.is_open());
    for _ in 0..2 {
        party.charge(&tokens(1), START);
        assert!(party.journal.is_open());
        assert_eq!([0; 2].map(|_| party.journal.take_dirty()), [true, false]);
        party.charge(&tokens(1), START);
        assert!(!party.journal.take_dirty());
        assert!(party.collect().is_some());
        assert!(!party.journal.take_dirty() && !party.journal.is_open());
    }
    party.reserve(&tokens(1), START);
    assert!(Journal::new(&party.limits, START).take_dirty(), "an amount is held");
}

#[test]
fn cool_down_and_reset_are_reported_once() {
    let mut party = Party::of(Quota::new().tpm(100), false);
    party.charge(&tokens(5), START);
    party.journal.cooling(START + 9 * S);
    let changes = party.collect().unwrap();
    assert_eq!((changes.cooling_until, changes.reset_at), (Some(START + 9 * S), None));
    party.charge(&tokens(6), START + S);
    party.journal.cooling(START + 9 * S);
    party.reset(START + 2 * S);
    let changes = party.collect().unwrap();
    assert_eq!(
        (changes.cooling_until, changes.reset_at),
        (Some(Timestamp::UNIX_EPOCH), Some(START + 2 * S))
    );
    assert!(changes.buckets.is_empty(), "dropped by the reset");
    assert_eq!(party.collect(), None);
}

// The changes of one bucket.

#[test]
fn delta_of_amounts_out_of_order_dates_none_earlier() {
    let party = Party::of(Quota::new().tpm(100), false);
    let (rule, bucket) = party.limits.iter().next().unwrap();
    let mut delta = Delta::default();
    for (at, amount) in [(5 * S, 1), (S / 10, 2), (S / 2, 3)] {
        delta.enter(rule, bucket, START + at, amount);
    }
    let changes = delta.collect(&Dimension::Tokens, Window::MINUTE, 0).unwrap();
    assert_eq!(changes.taken, [(START + S / 2, 5), (START + 5 * S, 1)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: full_or(5_000, 300), ..config() })]

    /// Many amounts are merged into few entries: no amount is lost, and none expires earlier.
    #[test]
    fn delta_of_many_amounts_keeps_all_in_few_entries(
        amounts in proptest::collection::vec((0..40_u64, 1..100_i64, 0..2_u8), 1..500),
    ) {
        let plan = plan(&Quota::new().tpm(100).with_algorithm(Algorithm::SlidingWindow), false, 1);
        let limits = Limits::new(Arc::new(plan));
        let (rule, bucket) = limits.iter().next().unwrap();
        let (mut delta, mut now) = (Delta::default(), START);
        delta.enter(rule, bucket, START + 99_999 * S, 1);
        let collect = |delta: &mut Delta| {
            let changes = delta.collect(&Dimension::Tokens, Window::MINUTE, 0);
            changes.map_or(Vec::new(), |changes| changes.taken)
        };
        prop_assert_eq!(collect(&mut delta), [(START + 99_999 * S, 1)]);
        let mut entered = Vec::new();
        for (after, amount, kind) in amounts {
            now += Duration::from_secs(after);
            // Amounts returned were collected before; the others are taken after them.
            let entry = if kind == 0 { (now, -amount) } else { (now + 100_000 * S, amount) };
            delta.enter(rule, bucket, entry.0, entry.1);
            entered.push(entry);
        }
        let collected = collect(&mut delta);
        let split = |entries: &[(Timestamp, i64)], returned: bool| {
            entries.iter().copied().filter(|(_, n)| (*n < 0) == returned).collect::<Vec<_>>()
        };
        for returned in [true, false] {
            let (all, kept) = (split(&entered, returned), split(&collected, returned));
            prop_assert!(kept.len() <= 128);
            let sum = |entries: &[(Timestamp, i64)], to: Timestamp| {
                entries.iter().filter(|(at, _)| *at <= to).map(|(_, n)| n).sum::<i64>()
            };
            prop_assert_eq!(sum(&all, Timestamp::MAX), sum(&kept, Timestamp::MAX));
            for &(at, _) in all.iter().chain(&kept) {
                // By any time, no more than the amounts taken has expired, and no less than those
                // returned.
                prop_assert!(sum(&kept, at) <= sum(&all, at), "{} by {}", returned, at);
            }
        }
    }
}
