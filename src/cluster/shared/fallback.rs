//! Admission while the store is unavailable: each process enforces its share of each limit, and
//! records what it admits, to charge it to the store later.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::piece::Piece;
use crate::engine::{self, Bucket, Rule};
use crate::limiter::{Reservation, ReserveError, Reserved};
use crate::quota::{Cost, Dimension, Key};
use crate::timestamp::Timestamp;

/// The local shares, and the amounts admitted without the store that the store does not know yet.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    outage: u64,
    shares: HashMap<Key, Share>,
    debts: HashMap<Key, Debt>,
}

/// The buckets of a key, in which each cost counts once per live process: the local share of the
/// limit.
#[derive(Debug)]
struct Share {
    rules: Arc<[Rule]>,
    buckets: Vec<Bucket>,
}

/// The amounts of a key that were admitted without the store.
#[derive(Debug)]
struct Debt {
    rules: Arc<[Rule]>,
    amounts: SmallVec<[u64; 3]>,
}

impl Fallback {
    /// Returns the number of the current outage, or of the next one.
    pub(super) fn outage(&self) -> u64 {
        self.outage
    }

    /// Reserves a cost in the local shares of all keys, or in none. A new share starts with the
    /// buckets that `begin` returns.
    pub(super) fn reserve(
        &mut self,
        reservation: &Reservation,
        members: u64,
        now: Timestamp,
        begin: impl Fn(&Reserved) -> Option<Vec<Bucket>>,
    ) -> Result<(), ReserveError> {
        let mut longest: Option<(usize, engine::Shortfall)> = None;
        for (scope, reserved) in reservation.scopes.iter().enumerate() {
            let share = self.share(reserved, now, &begin);
            let cost = multiplied(&reserved.rules, &reservation.cost, members);
            if let Err(shortfall) = engine::check(&share.rules, &share.buckets, &cost, now)
                && longest.is_none_or(|(_, longest)| shortfall.wait > longest.wait)
            {
                longest = Some((scope, shortfall));
            }
        }
        if let Some((scope, shortfall)) = longest {
            return Err(ReserveError::Short { scope, shortfall });
        }
        for reserved in &reservation.scopes {
            let share = self.share(reserved, now, &begin);
            let cost = multiplied(&reserved.rules, &reservation.cost, members);
            engine::commit(&share.rules, &mut share.buckets, &cost, now);
        }
        Ok(())
    }

    /// Records the cost of an admitted request, to charge it to the store.
    pub(super) fn add_debt(&mut self, reservation: &Reservation) {
        self.adjust_debt(reservation, &reservation.cost, &Cost::new().requests(0));
    }

    /// Settles a request that was admitted during this outage. `actual` is `None` for a request that
    /// was never sent.
    pub(super) fn end(
        &mut self,
        reservation: &Reservation,
        actual: Option<&Cost>,
        members: u64,
        sent: Timestamp,
        now: Timestamp,
    ) {
        let nothing = Cost::new().requests(0);
        self.adjust_debt(reservation, actual.unwrap_or(&nothing), &reservation.cost);
        for reserved in &reservation.scopes {
            let Some(share) = self.shares.get_mut(&reserved.key) else { continue };
            let rules = &share.rules;
            let (buckets, before) =
                (&mut share.buckets, multiplied(rules, &reservation.cost, members));
            match actual {
                Some(actual) => {
                    let actual = multiplied(rules, actual, members);
                    engine::settle(rules, buckets, sent, &before, &actual, now);
                }
                None => engine::release(rules, buckets, sent, &before, now),
            }
        }
    }

    /// Frees the concurrency slots of a request that the store had granted.
    pub(super) fn release_concurrency(&mut self, reservation: &Reservation) {
        for reserved in &reservation.scopes {
            let Some(share) = self.shares.get_mut(&reserved.key) else { continue };
            for (rule, bucket) in share.rules.iter().zip(&mut share.buckets) {
                if *rule.dimension() == Dimension::Concurrency {
                    bucket.drop_hold(1);
                }
            }
        }
    }

    /// Resets the usage of a key.
    pub(super) fn reset(&mut self, key: &str) {
        self.debts.remove(key);
        if let Some(Share { rules, buckets }) = self.shares.get_mut(key) {
            for (rule, bucket) in rules.iter().zip(buckets) {
                *bucket = bucket.cleared(rule);
            }
        }
    }

    /// Ends the outage: the store decides again.
    pub(super) fn end_outage(&mut self) {
        self.outage += 1;
        self.shares.clear();
    }

    /// Returns the number of keys with amounts to charge to the store.
    pub(super) fn count_debts(&self) -> usize {
        let has_amount = |debt: &&Debt| debt.amounts.iter().any(|amount| *amount > 0);
        self.debts.values().filter(has_amount).count()
    }

    /// Discards the shares of a reservation's keys, because the store has decided about them.
    pub(super) fn discard_shares(&mut self, reservation: &Reservation) {
        if !self.shares.is_empty() {
            for reserved in &reservation.scopes {
                self.shares.remove(&reserved.key);
            }
        }
    }

    /// Takes the recorded amounts, to charge them to the store.
    pub(super) fn take_debts(&mut self) -> Vec<Piece> {
        let debts = std::mem::take(&mut self.debts).into_iter();
        let piece = |(key, Debt { rules, amounts })| Piece { key, rules, amounts, lease: None };
        debts.map(piece).filter(|piece| piece.amounts.iter().any(|amount| *amount > 0)).collect()
    }

    fn share(
        &mut self,
        reserved: &Reserved,
        now: Timestamp,
        begin: &impl Fn(&Reserved) -> Option<Vec<Bucket>>,
    ) -> &mut Share {
        let rules = &reserved.rules;
        let known = self.shares.get(&reserved.key);
        if known.is_none_or(|known| known.rules != *rules) {
            let new = || rules.iter().map(Bucket::new).collect();
            let mut buckets = begin(reserved).unwrap_or_else(new);
            for (rule, bucket) in rules.iter().zip(&mut buckets) {
                match known.and_then(|known| known.carried_over(rule, now)) {
                    Some(carried_over) => *bucket = carried_over,
                    None => charge_held(rule, bucket, now),
                }
            }
            let share = Share { rules: Arc::clone(rules), buckets };
            self.shares.insert(reserved.key.clone(), share);
        }
        self.shares.get_mut(&reserved.key).expect("the share was just inserted")
    }

    /// Adds `more` to the recorded amounts and subtracts `less`.
    fn adjust_debt(&mut self, reservation: &Reservation, more: &Cost, less: &Cost) {
        for Reserved { key, rules, .. } in &reservation.scopes {
            let new = || Debt { rules: Arc::clone(rules), amounts: SmallVec::new() };
            let debts = self.debts.entry(key.clone()).or_insert_with(new);
            if debts.rules != *rules || debts.amounts.is_empty() {
                debts.amounts = rules.iter().map(|rule| debts.amount_for(rule)).collect();
                debts.rules = Arc::clone(rules);
            }
            for (rule, amount) in rules.iter().zip(&mut debts.amounts) {
                let sum = amount.saturating_add(rule.amount(more));
                *amount = sum.saturating_sub(rule.amount(less));
            }
        }
    }
}

impl Share {
    /// Carries the bucket of the same limit over to a changed rule.
    fn carried_over(&self, rule: &Rule, now: Timestamp) -> Option<Bucket> {
        let index = self.rules.iter().position(|old| old.counts_same_as(rule))?;
        Some(self.buckets.get(index)?.carry(&self.rules[index], rule, now))
    }
}

impl Debt {
    /// Returns the recorded amount for the limit of a rule, which may have changed.
    fn amount_for(&self, rule: &Rule) -> u64 {
        let index = self.rules.iter().position(|old| old.counts_same_as(rule));
        index.and_then(|index| self.amounts.get(index).copied()).unwrap_or(0)
    }
}

/// Converts the amounts that other processes hold to usage when the store becomes unavailable,
/// since this process won't learn of their settlements. Concurrency slots stay held until the process's own
/// requests end.
fn charge_held(rule: &Rule, bucket: &mut Bucket, now: Timestamp) {
    let held = bucket.held();
    if held > 0 && *rule.dimension() != Dimension::Concurrency {
        bucket.drop_hold(held);
        bucket.charge(rule, held, now);
    }
}

/// Multiplies the amounts of these rules by the number of members.
fn multiplied(rules: &[Rule], cost: &Cost, members: u64) -> Cost {
    let mut all = Cost::new().requests(0);
    for rule in rules {
        let amount = rule.amount(cost).saturating_mul(members);
        all.set(rule.dimension(), amount);
    }
    all
}
