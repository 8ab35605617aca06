use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::bucket_lease::BucketLease;
use super::lease_call::{LeaseCall, LeaseLimits};
use super::lease_debit::LeaseDebit;
use crate::cluster::shared::script::{Amounts, Id, LeaseRequest};
use crate::engine::{self, Bucket, Rule};
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// What a process holds of one key's buckets, and what it has done with it.
///
/// A request goes through [`try_take`](Self::try_take) and one of [`settle`](Self::settle) and
/// [`release`](Self::release). In between and beside, the server is asked: [`ask`](Self::ask), then
/// one of [`granted`](Self::granted), [`refused`](Self::refused), [`unknown`](Self::unknown) and
/// [`on_no_response`](Self::unheard), one question at a time. Times are those of this process's own
/// clock.
#[derive(Debug)]
pub(in crate::cluster::shared) struct KeyLease {
    rules: Arc<[Rule]>,
    buckets: SmallVec<[BucketLease; 3]>,
    /// Fresh buckets that say when a window is closed; of rules that are always open none.
    gates: Vec<Bucket>,
    /// For how long the server holds a lease.
    time: Duration,
    /// The name of the first lease of this ledger; that of a later one has its number in it.
    id: Id,
    generation: u32,
    /// The number of the last question, and of the first that told what is being told.
    turn: u32,
    first_report: u32,
    /// Whether the server has answered that question or one after it.
    acknowledged: bool,
    call_open: bool,
    called_at: Timestamp,
    /// Nothing is admitted from then on.
    until: Timestamp,
    used_at: Timestamp,
    /// The server had no room when it was last asked: it isn't asked for a lease before then.
    retry_at: Timestamp,
}

impl KeyLease {
    /// Nothing is held yet. `time` is the lease time; the last 4 bytes of `id` are the ledger's to
    /// use, for the number of the lease, of which the first is given too.
    pub(in crate::cluster::shared) fn new(
        rules: Arc<[Rule]>,
        id: Id,
        generation: u32,
        time: Duration,
    ) -> Self {
        let buckets = rules.iter().map(|_| BucketLease::default()).collect();
        let gates = if rules.iter().all(Rule::refills) {
            Vec::new()
        } else {
            rules.iter().map(Bucket::new).collect()
        };
        Self {
            rules,
            buckets,
            gates,
            time,
            id,
            generation,
            turn: 0,
            first_report: 0,
            acknowledged: true,
            call_open: false,
            called_at: Timestamp::UNIX_EPOCH,
            until: Timestamp::UNIX_EPOCH,
            used_at: Timestamp::UNIX_EPOCH,
            retry_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Whether requests under these rules can be decided out of a lease. What counts from its first
    /// use on has to be known when it is used, and so has what is in flight.
    pub(in crate::cluster::shared) fn supports(rules: &[Rule]) -> bool {
        let exact = |rule: &Rule| rule.is_anchored() || *rule.dimension() == Dimension::Concurrency;
        !rules.is_empty() && !rules.iter().any(exact)
    }

    pub(in crate::cluster::shared) fn rules(&self) -> &Arc<[Rule]> {
        &self.rules
    }

    /// Takes a cost out of what is held: of all buckets or of none. `None`: it isn't there, or not any
    /// more, or the window is closed.
    #[inline]
    pub(in crate::cluster::shared) fn try_take(
        &mut self,
        rules: &Arc<[Rule]>,
        cost: &Cost,
        now: Timestamp,
    ) -> Option<LeaseDebit> {
        if !self.can_take(rules, cost, now) {
            return None;
        }
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            let amount = rule.amount(cost);
            let of = if rule.holds() { &mut bucket.in_flight } else { &mut bucket.unreported };
            *of = of.saturating_add(amount);
            bucket.demand.add(amount);
        }
        self.used_at = self.used_at.max(now);
        Some(LeaseDebit { generation: self.generation, first_report: self.first_report })
    }

    /// Whether it can take it.
    #[inline]
    pub(in crate::cluster::shared) fn can_take(
        &self,
        rules: &Arc<[Rule]>,
        cost: &Cost,
        now: Timestamp,
    ) -> bool {
        now < self.until
            && self.has_rules(rules)
            && self.covers(cost)
            && self.is_window_open(cost, now)
    }

    /// Undoes a taking of this moment: another key of the request had no room.
    pub(in crate::cluster::shared) fn undo_take(&mut self, taken: LeaseDebit, cost: &Cost) {
        self.release(taken, cost);
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            bucket.demand.sub(rule.amount(cost));
        }
    }

    /// A request ended that had reserved `reserved`, and took `actual`. More than was reserved is told
    /// as it is. Less is free again, unless it was charged when it was sent and is told already.
    pub(in crate::cluster::shared) fn settle(
        &mut self,
        taken: LeaseDebit,
        reserved: &Cost,
        actual: &Cost,
    ) {
        let (there, untold) =
            (taken.generation == self.generation, taken.first_report == self.first_report);
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            let (reserved, actual) = (rule.amount(reserved), rule.amount(actual));
            let more = match (rule.holds(), there) {
                (true, true) => {
                    bucket.in_flight = bucket.in_flight.saturating_sub(reserved);
                    actual
                }
                (false, true) if untold => {
                    bucket.unreported = bucket.unreported.saturating_sub(reserved);
                    actual
                }
                // The server has taken what was reserved.
                _ => actual.saturating_sub(reserved),
            };
            bucket.unreported = bucket.unreported.saturating_add(more);
        }
    }

    /// A request that never left.
    pub(in crate::cluster::shared) fn release(&mut self, taken: LeaseDebit, reserved: &Cost) {
        let nothing = Cost::new().requests(0);
        self.settle(taken, reserved, &nothing);
    }

    /// What was used and not told is forgotten; what is held stays held.
    pub(in crate::cluster::shared) fn reset(&mut self) {
        self.buckets.iter_mut().for_each(|bucket| bucket.unreported = 0);
    }

    /// Whether the server is to be asked now, though nobody waits for it.
    pub(in crate::cluster::shared) fn is_due(&self, now: Timestamp) -> bool {
        if self.call_open || self.is_empty() {
            return false;
        }
        let passed = now - self.called_at;
        passed >= self.time / RENEWALS_PER_LEASE
            || (passed >= self.time / EARLY_RENEWALS_PER_LEASE && self.is_half_empty())
    }

    /// Whether a lease is worth asking for on behalf of a request that can't be taken.
    pub(in crate::cluster::shared) fn may_ask(
        &self,
        rules: &Arc<[Rule]>,
        cost: &Cost,
        now: Timestamp,
    ) -> bool {
        let fits = |rule: &Rule| rule.amount(cost) <= rule.capacity();
        let free = !self.call_open && now >= self.retry_at;
        free && self.has_rules(rules) && self.rules.iter().all(fits)
    }

    /// Nothing is held, and there is nothing to tell.
    pub(in crate::cluster::shared) fn is_empty(&self) -> bool {
        self.buckets.iter().all(BucketLease::is_empty)
    }

    /// Nobody needs it any more.
    pub(in crate::cluster::shared) fn is_expired(&self, now: Timestamp) -> bool {
        let rested = now - self.used_at.max(self.called_at) >= self.time;
        rested && !self.call_open && self.is_empty()
    }

    /// For each rule, what was used and isn't known to be heard, and what is free.
    pub(in crate::cluster::shared) fn amounts(&self, now: Timestamp) -> Vec<(u64, u64)> {
        let free = |bucket: &BucketLease| if now < self.until { bucket.free() } else { 0 };
        self.buckets
            .iter()
            .map(|bucket| (bucket.unreported.saturating_add(bucket.reporting), free(bucket)))
            .collect()
    }

    /// What to ask the server: to hold what is wanted from now on, and what was used. With a `waiting`
    /// request at least that, or nothing: what is free is given back first, so that it doesn't stand in
    /// the request's own way, and can't be taken until there is an answer. Not to be called while
    /// another question is open.
    pub(in crate::cluster::shared) fn prepare_call(
        &mut self,
        waiting: Option<&Cost>,
        room: &LeaseLimits,
        now: Timestamp,
    ) -> LeaseCall {
        self.turn += 1;
        if self.acknowledged {
            self.first_report = self.turn;
        }
        let idle = waiting.is_none() && now - self.used_at >= self.time;
        let mut ask =
            LeaseCall { id: self.id(), used: Amounts::new(), wanted: LeaseRequest::default() };
        (ask.wanted.turn, ask.wanted.first_report) = (self.turn, self.first_report);
        for (index, (rule, bucket)) in self.rules.iter().zip(&mut self.buckets).enumerate() {
            if self.acknowledged {
                bucket.reporting = std::mem::take(&mut bucket.unreported);
            }
            let free = bucket.free();
            let kept = bucket.keep(waiting.is_none() && !idle);
            let least = waiting.map_or(0, |cost| rule.amount(cost));
            let target = bucket.demand.per_lease(self.time, now).max(least.saturating_mul(2));
            let part = room.fair_share(index, rule.capacity());
            let wanted = match waiting {
                _ if idle => 0,
                Some(_) => target.min(part.saturating_add(free)).max(least),
                None => target.saturating_sub(free).min(part),
            };
            ask.used.push(bucket.reporting);
            ask.wanted.inflight.push(kept);
            ask.wanted.least.push(least);
            ask.wanted.wanted.push(wanted);
        }
        (self.acknowledged, self.call_open, self.called_at) = (false, true, now);
        ask
    }

    /// The server holds so much more than what was kept.
    pub(in crate::cluster::shared) fn on_granted(&mut self, granted: &[u64]) {
        for (index, bucket) in self.buckets.iter_mut().enumerate() {
            bucket.acknowledge(granted.get(index).copied().unwrap_or(0));
        }
        (self.acknowledged, self.call_open) = (true, false);
        // A sixteenth earlier: clocks don't run alike.
        self.until = self.called_at + (self.time - self.time / DRIFT_DIVISOR);
    }

    /// The server had too little for the request that waited: it holds what was kept, and has taken
    /// what was told. Before `until` a lease isn't asked for again.
    pub(in crate::cluster::shared) fn on_refused(&mut self, until: Timestamp) {
        self.on_granted(&[]);
        self.retry_at = until;
    }

    /// The server no longer has this lease: it has counted as used what it held.
    pub(in crate::cluster::shared) fn on_unknown(&mut self) {
        self.buckets.iter_mut().for_each(BucketLease::expire);
        self.start_new_generation();
    }

    /// There was no answer: whether the server has heard it isn't known. The next question tells the
    /// same once more.
    pub(in crate::cluster::shared) fn on_no_response(&mut self) {
        self.call_open = false;
    }

    /// The end: what was used, with what is in flight as it was reserved. Nothing is held any more.
    pub(in crate::cluster::shared) fn close(&mut self) -> LeaseCall {
        self.turn += 1;
        let mut ask =
            LeaseCall { id: self.id(), used: Amounts::new(), wanted: LeaseRequest::default() };
        // Rather told twice than not at all.
        (ask.wanted.turn, ask.wanted.first_report) = (self.turn, self.turn);
        for bucket in &mut self.buckets {
            ask.used.push(bucket.reporting.saturating_add(bucket.committed()));
            *bucket = BucketLease::default();
        }
        self.start_new_generation();
        ask
    }

    /// Whether these are the rules that the lease was taken by. Under others it isn't used any more, and
    /// so given back.
    #[inline]
    fn has_rules(&self, rules: &Arc<[Rule]>) -> bool {
        Arc::ptr_eq(&self.rules, rules) || self.rules == *rules
    }

    #[inline]
    fn covers(&self, cost: &Cost) -> bool {
        self.rules
            .iter()
            .zip(&self.buckets)
            .all(|(rule, bucket)| rule.amount(cost) <= bucket.free())
    }

    #[inline]
    fn is_window_open(&self, cost: &Cost, now: Timestamp) -> bool {
        self.gates.is_empty() || engine::fits(&self.rules, &self.gates, cost, now)
    }

    fn is_half_empty(&self) -> bool {
        self.buckets
            .iter()
            .any(|bucket| bucket.free_at_renewal > 0 && bucket.free() <= bucket.free_at_renewal / 2)
    }

    fn start_new_generation(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        (self.turn, self.first_report, self.acknowledged, self.call_open) = (0, 0, true, false);
        self.until = Timestamp::UNIX_EPOCH;
    }

    fn id(&self) -> Id {
        let mut id = self.id;
        id.0[12..].copy_from_slice(&self.generation.to_be_bytes());
        id
    }
}

/// A lease is renewed so many times in its time.
const RENEWALS_PER_LEASE: u32 = 3;

/// At most so often in its time because it is half empty.
const EARLY_RENEWALS_PER_LEASE: u32 = 16;

/// By this part of its time a lease ends earlier here than on the server.
const DRIFT_DIVISOR: u32 = 16;
