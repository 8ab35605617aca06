//! Admission while the store is unavailable: each process enforces its share of each limit, and
//! records what it admits, to charge it to the store later.

use std::collections::HashMap;
use std::sync::Arc;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Bucket, Rule, Shortfall};
use paceline_limiter::limiter::{Reservation, ReserveError, Reserved};
use paceline_limiter::quota::{Cost, Key};
use paceline_limiter::seam;
use smallvec::SmallVec;

use super::piece::Piece;
use super::share::Share;
use super::turns::Turns;

/// The local shares, and the amounts admitted without the store that the store does not know yet.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    outage: u64,
    shares: HashMap<Key, Share>,
    debts: HashMap<Key, Debt>,
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
        now: Timestamp,
        turns: &Turns,
        begin: impl Fn(&Reserved) -> Option<Vec<Bucket>>,
    ) -> Result<(), ReserveError> {
        let mut longest: Option<(usize, Shortfall)> = None;
        for (scope, reserved) in reservation.scopes.iter().enumerate() {
            let share = self.share(reserved, now, &begin);
            if let Err(shortfall) = share.check(&reserved.part(&reservation.cost), turns, now)
                && longest.is_none_or(|(_, longest)| shortfall.wait > longest.wait)
            {
                longest = Some((scope, shortfall));
            }
        }
        if let Some((scope, shortfall)) = longest {
            return Err(ReserveError::Short { scope, shortfall, earliest: None });
        }
        for reserved in &reservation.scopes {
            let share = self.share(reserved, now, &begin);
            share.commit(&reserved.part(&reservation.cost), turns, now);
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
        turns: &Turns,
        sent: Timestamp,
        now: Timestamp,
    ) {
        let nothing = Cost::new().requests(0);
        self.adjust_debt(reservation, actual.unwrap_or(&nothing), &reservation.cost);
        for reserved in &reservation.scopes {
            if let Some(share) = self.shares.get_mut(&reserved.key) {
                let actual = actual.map(|actual| reserved.part(actual));
                share.end(&reserved.part(&reservation.cost), actual.as_deref(), turns, sent, now);
            }
        }
    }

    /// Frees the concurrency slots of a request that the store had granted.
    pub(super) fn release_concurrency(&mut self, reservation: &Reservation) {
        for reserved in
            reservation.scopes.iter().filter(|reserved| !seam::is_spending_key(reserved))
        {
            if let Some(share) = self.shares.get_mut(&reserved.key) {
                share.release_concurrency();
            }
        }
    }

    /// Resets the usage of a key.
    pub(super) fn reset(&mut self, key: &str) {
        self.debts.remove(key);
        self.shares.get_mut(key).into_iter().for_each(Share::reset);
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
        if known.is_none_or(|known| !known.has_rules(rules)) {
            let new = || rules.iter().map(Bucket::new).collect();
            let buckets = begin(reserved).unwrap_or_else(new);
            let share = Share::new(Arc::clone(rules), buckets, known, now);
            self.shares.insert(reserved.key.clone(), share);
        }
        self.shares.get_mut(&reserved.key).expect("the share was just inserted")
    }

    /// Adds `more` to the recorded amounts and subtracts `less`.
    fn adjust_debt(&mut self, reservation: &Reservation, more: &Cost, less: &Cost) {
        for reserved in &reservation.scopes {
            let Reserved { key, rules, .. } = reserved;
            let (more, less) = (&*reserved.part(more), &*reserved.part(less));
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

impl Debt {
    /// Returns the recorded amount for the limit of a rule, which may have changed.
    fn amount_for(&self, rule: &Rule) -> u64 {
        let index = self.rules.iter().position(|old| old.counts_same_as(rule));
        index.and_then(|index| self.amounts.get(index).copied()).unwrap_or(0)
    }
}
