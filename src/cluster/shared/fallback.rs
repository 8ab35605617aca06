use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;
use smallvec::SmallVec;

use super::piece::Piece;
use crate::engine::{self, Bucket, Rule};
use crate::limiter::{Reservation, Reserved, Unmet};
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// What this process decides by itself while the store is away, and what of it the store isn't told
/// yet.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    outage: u64,
    shares: HashMap<CompactString, Share>,
    debts: HashMap<CompactString, Debt>,
}

/// The buckets of a key as if there were only this process, in which each cost counts as often as
/// there are members.
#[derive(Debug)]
struct Share {
    rules: Arc<[Rule]>,
    buckets: Vec<Bucket>,
}

/// What was let in of a key.
#[derive(Debug)]
struct Debt {
    rules: Arc<[Rule]>,
    amounts: SmallVec<[u64; 3]>,
}

impl Fallback {
    /// The number of the outage that lasts, or comes next.
    pub(super) fn outage(&self) -> u64 {
        self.outage
    }

    /// Reserves in this process's share of all keys, or in none. A key that has none yet begins with
    /// the buckets that `begin` knows.
    pub(super) fn reserve(
        &mut self,
        reservation: &Reservation,
        members: u64,
        now: Timestamp,
        begin: impl Fn(&Reserved) -> Option<Vec<Bucket>>,
    ) -> Result<(), Unmet> {
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
            return Err(Unmet::Short { scope, shortfall });
        }
        for reserved in &reservation.scopes {
            let share = self.share(reserved, now, &begin);
            let cost = multiplied(&reserved.rules, &reservation.cost, members);
            engine::commit(&share.rules, &mut share.buckets, &cost, now);
        }
        Ok(())
    }

    /// It was let in: the store is to be told.
    pub(super) fn add_debt(&mut self, reservation: &Reservation) {
        self.adjust_debt(reservation, &reservation.cost, &Cost::new().requests(0));
    }

    /// A request that was let in during this outage has ended: what it took counts, and nothing if it
    /// never left.
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
            let before = multiplied(rules, &reservation.cost, members);
            let (buckets, sent) = (&mut share.buckets, (sent, &before));
            match actual {
                Some(actual) => {
                    engine::settle(rules, buckets, sent, &multiplied(rules, actual, members), now);
                }
                None => engine::release(rules, buckets, sent, now),
            }
        }
    }

    /// A request that the store had granted has ended: of what is in flight, there is one less.
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

    /// Forgets what a key has used.
    pub(super) fn reset(&mut self, key: &str) {
        self.debts.remove(key);
        if let Some(Share { rules, buckets }) = self.shares.get_mut(key) {
            for (rule, bucket) in rules.iter().zip(buckets) {
                *bucket = bucket.cleared(rule);
            }
        }
    }

    /// The store decides again.
    pub(super) fn end_outage(&mut self) {
        self.outage += 1;
        self.shares.clear();
    }

    /// Whether the store is to be told of anything.
    pub(super) fn has_debt(&self) -> bool {
        self.debts.values().any(|debts| debts.amounts.iter().any(|amount| *amount > 0))
    }

    /// The store, which isn't away, has decided about these keys: no share goes on beside it.
    pub(super) fn discard_shares(&mut self, reservation: &Reservation) {
        if !self.shares.is_empty() {
            for reserved in &reservation.scopes {
                self.shares.remove(&reserved.key);
            }
        }
    }

    /// What is to be charged of what was let in until now; it is owed here no more.
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

    /// More is owed by so much, and less by so much.
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
    /// A bucket as it goes on under another rule, if it was there.
    fn carried_over(&self, rule: &Rule, now: Timestamp) -> Option<Bucket> {
        let index = self.rules.iter().position(|old| old.is_standing(rule))?;
        Some(self.buckets.get(index)?.carry(&self.rules[index], rule, now))
    }
}

impl Debt {
    /// What is owed under a rule, which may be another than before.
    fn amount_for(&self, rule: &Rule) -> u64 {
        let index = self.rules.iter().position(|old| old.is_standing(rule));
        index.and_then(|index| self.amounts.get(index).copied()).unwrap_or(0)
    }
}

/// What others hold when the store goes away counts as used, since nobody will say what it took. Of
/// those in flight, one's own end.
fn charge_held(rule: &Rule, bucket: &mut Bucket, now: Timestamp) {
    let held = bucket.held();
    if held > 0 && *rule.dimension() != Dimension::Concurrency {
        bucket.drop_hold(held);
        bucket.charge(rule, held, now);
    }
}

/// A cost that counts so often, of these rules.
fn multiplied(rules: &[Rule], cost: &Cost, members: u64) -> Cost {
    let mut all = Cost::new().requests(0);
    for rule in rules {
        let amount = rule.amount(cost).saturating_mul(members);
        all.set(rule.dimension(), amount);
    }
    all
}
