use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{self, Bucket, Rule};
use paceline_limiter::quota::{Cost, Dimension};
use paceline_limiter::seam;
use smallvec::SmallVec;

use super::bucket_lease::BucketLease;
use super::lease_call::{LeaseCall, LeaseLimits};
use super::lease_debit::LeaseDebit;
use crate::shared::script::{Amounts, Id, LeaseRequest};

/// The lease of one key: the amounts held on the server for this process, and their usage.
///
/// For each request, call [`try_take`](Self::try_take), then either [`settle`](Self::settle) or
/// [`release`](Self::release). For each call to the server, call
/// [`prepare_call`](Self::prepare_call), then one of [`on_granted`](Self::on_granted),
/// [`on_refused`](Self::on_refused), [`on_unknown`](Self::on_unknown) and
/// [`on_no_response`](Self::on_no_response); only one call may be open at a time. All times are
/// those of this process's clock.
#[derive(Debug)]
pub(crate) struct KeyLease {
    rules: Arc<[Rule]>,
    buckets: SmallVec<[BucketLease; 3]>,
    /// Empty buckets, to check whether the windows are open; none if all rules refill continuously.
    windows: Vec<Bucket>,
    /// The duration of a lease.
    duration: Duration,
    /// The id, whose last 4 bytes are replaced with the generation.
    id: Id,
    /// The number of times that the lease was lost or closed, plus its start value.
    generation: u32,
    /// The number of the last call, and of the first call that reported the usage in transit.
    last_call: u32,
    first_report: u32,
    /// True if the server has responded to the last call.
    acknowledged: bool,
    call_open: bool,
    called_at: Timestamp,
    /// The end of the lease; no request is admitted from then on.
    until: Timestamp,
    used_at: Timestamp,
    /// The time before which no lease is requested, after a refusal.
    retry_at: Timestamp,
}

impl KeyLease {
    /// Creates an empty lease that lasts for `duration`. The last 4 bytes of `id` are overwritten with
    /// the generation, which starts at `generation`.
    pub(crate) fn new(rules: Arc<[Rule]>, id: Id, generation: u32, duration: Duration) -> Self {
        let buckets = rules.iter().map(|_| BucketLease::default()).collect();
        let windows = if rules.iter().all(Rule::refills) {
            Vec::new()
        } else {
            rules.iter().map(Bucket::new).collect()
        };
        Self {
            rules,
            buckets,
            windows,
            duration,
            id,
            generation,
            last_call: 0,
            first_report: 0,
            acknowledged: true,
            call_open: false,
            called_at: Timestamp::UNIX_EPOCH,
            until: Timestamp::UNIX_EPOCH,
            used_at: Timestamp::UNIX_EPOCH,
            retry_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Returns whether leases can decide about requests under these rules. Concurrency limits and
    /// windows anchored at first use can't be leased, since the server must know every use
    /// immediately.
    pub(crate) fn supports(rules: &[Rule]) -> bool {
        let needs_exact =
            |rule: &Rule| seam::is_anchored(rule) || *rule.dimension() == Dimension::Concurrency;
        !rules.is_empty() && !rules.iter().any(needs_exact)
    }

    pub(crate) fn rules(&self) -> &Arc<[Rule]> {
        &self.rules
    }

    /// Takes a cost from all buckets, or from none. Returns `None` if too little is held, the lease
    /// has ended, or a window is closed.
    #[inline]
    pub(crate) fn try_take(
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
            let sum = if rule.holds() { &mut bucket.in_flight } else { &mut bucket.unreported };
            *sum = sum.saturating_add(amount);
            bucket.demand.add(amount);
        }
        self.used_at = self.used_at.max(now);
        Some(LeaseDebit { generation: self.generation, first_report: self.first_report })
    }

    /// Returns whether [`try_take`](Self::try_take) would succeed.
    #[inline]
    pub(crate) fn can_take(&self, rules: &Arc<[Rule]>, cost: &Cost, now: Timestamp) -> bool {
        now < self.until
            && self.has_rules(rules)
            && self.covers(cost)
            && self.is_window_open(cost, now)
    }

    /// Undoes a take, because the lease of another key of the request holds too little.
    pub(crate) fn undo_take(&mut self, taken: LeaseDebit, cost: &Cost) {
        self.release(taken, cost);
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            bucket.demand.sub(rule.amount(cost));
        }
    }

    /// Settles a request. Usage beyond the reservation is reported in addition. The unused part of
    /// the reservation becomes free again, unless it was charged at send time and has been reported.
    pub(crate) fn settle(&mut self, taken: LeaseDebit, reserved: &Cost, actual: &Cost) {
        let is_current = taken.generation == self.generation;
        let is_unreported = taken.first_report == self.first_report;
        for (rule, bucket) in self.rules.iter().zip(&mut self.buckets) {
            let (reserved, actual) = (rule.amount(reserved), rule.amount(actual));
            let more = match (rule.holds(), is_current) {
                (true, true) => {
                    bucket.in_flight = bucket.in_flight.saturating_sub(reserved);
                    actual
                }
                (false, true) if is_unreported => {
                    bucket.unreported = bucket.unreported.saturating_sub(reserved);
                    actual
                }
                // The server has already charged the reserved amount.
                _ => actual.saturating_sub(reserved),
            };
            bucket.unreported = bucket.unreported.saturating_add(more);
        }
    }

    /// Releases a request that was never sent.
    pub(crate) fn release(&mut self, taken: LeaseDebit, reserved: &Cost) {
        let nothing = Cost::new().requests(0);
        self.settle(taken, reserved, &nothing);
    }

    /// Discards unreported usage; holds stay.
    pub(crate) fn reset(&mut self) {
        self.buckets.iter_mut().for_each(|bucket| bucket.unreported = 0);
    }

    /// Returns whether a call is due even if no request waits for one.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        if self.call_open || self.is_empty() {
            return false;
        }
        let passed = now - self.called_at;
        passed >= self.duration / RENEWALS_PER_LEASE
            || (passed >= self.duration / EARLY_RENEWALS_PER_LEASE && self.is_half_empty())
    }

    /// Returns whether to request a lease for a request that can't be taken.
    pub(crate) fn can_request(&self, rules: &Arc<[Rule]>, cost: &Cost, now: Timestamp) -> bool {
        let fits = |rule: &Rule| rule.amount(cost) <= rule.capacity();
        let can_call = !self.call_open && now >= self.retry_at;
        can_call && self.has_rules(rules) && self.rules.iter().all(fits)
    }

    /// Returns whether no amount is held and none is to be reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.iter().all(BucketLease::is_empty)
    }

    /// Returns whether the lease is empty and has not been used for a lease duration.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        let is_idle = now - self.used_at.max(self.called_at) >= self.duration;
        is_idle && !self.call_open && self.is_empty()
    }

    /// Returns the usage that the server has not acknowledged, and the free amount, for each rule.
    pub(crate) fn amounts(&self, now: Timestamp) -> Vec<(u64, u64)> {
        let free = |bucket: &BucketLease| if now < self.until { bucket.free() } else { 0 };
        self.buckets
            .iter()
            .map(|bucket| (bucket.unreported.saturating_add(bucket.reporting), free(bucket)))
            .collect()
    }

    /// Prepares a call that reports usage and requests amounts for the next period.
    ///
    /// For a `waiting` request, the call requests at least its cost. It also returns the free amounts,
    /// which could block the request; they can't be taken until the server responds. Must not be
    /// called while another call is open.
    pub(crate) fn prepare_call(
        &mut self,
        waiting: Option<&Cost>,
        limits: &LeaseLimits,
        now: Timestamp,
    ) -> LeaseCall {
        self.last_call += 1;
        if self.acknowledged {
            self.first_report = self.last_call;
        }
        let idle = waiting.is_none() && now - self.used_at >= self.duration;
        let mut call = self.call();
        for (index, (rule, bucket)) in self.rules.iter().zip(&mut self.buckets).enumerate() {
            if self.acknowledged {
                bucket.reporting = std::mem::take(&mut bucket.unreported);
            }
            let free = bucket.free();
            let kept = bucket.keep(waiting.is_none() && !idle);
            let least = waiting.map_or(0, |cost| rule.amount(cost));
            let target = bucket.demand.per_lease(self.duration, now).max(least.saturating_mul(2));
            let part = limits.fair_share(index, rule.capacity());
            let wanted = match waiting {
                _ if idle => 0,
                Some(_) => target.min(part.saturating_add(free)).max(least),
                None => target.saturating_sub(free).min(part),
            };
            call.used.push(bucket.reporting);
            call.wanted.inflight.push(kept);
            call.wanted.least.push(least);
            call.wanted.wanted.push(wanted);
        }
        (self.acknowledged, self.call_open, self.called_at) = (false, true, now);
        call
    }

    /// Handles a grant of `granted` in addition to the kept amounts.
    pub(crate) fn on_granted(&mut self, granted: &[u64]) {
        for (index, bucket) in self.buckets.iter_mut().enumerate() {
            bucket.acknowledge(granted.get(index).copied().unwrap_or(0));
        }
        (self.acknowledged, self.call_open) = (true, false);
        // The lease ends earlier here than on the server, since clocks run at different rates.
        self.until = self.called_at + (self.duration - self.duration / DRIFT_DIVISOR);
    }

    /// Handles a refusal: the server holds the kept amounts and has charged the reported usage. No
    /// lease is requested before `until`.
    pub(crate) fn on_refused(&mut self, until: Timestamp) {
        self.on_granted(&[]);
        self.retry_at = until;
    }

    /// Handles an unknown lease: the server has dropped it and counted its amounts as used.
    pub(crate) fn on_unknown(&mut self) {
        self.buckets.iter_mut().for_each(BucketLease::expire);
        self.start_new_generation();
    }

    /// Handles a missing response: the server may or may not have executed the call. The next call
    /// reports the same usage again.
    pub(crate) fn on_no_response(&mut self) {
        self.call_open = false;
    }

    /// Closes the lease, and returns the call that reports all usage, with requests in flight
    /// counted as reserved.
    pub(crate) fn close(&mut self) -> LeaseCall {
        self.last_call += 1;
        // Usage in transit may be reported twice here, but is never lost.
        self.first_report = self.last_call;
        let mut call = self.call();
        for bucket in &mut self.buckets {
            call.used.push(bucket.reporting.saturating_add(bucket.committed()));
            *bucket = BucketLease::default();
        }
        self.start_new_generation();
        call
    }

    /// Returns whether the lease was taken under these rules. A lease under other rules is no longer
    /// used, and is returned once it is idle.
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
        self.windows.is_empty() || engine::fits(&self.rules, &self.windows, cost, now)
    }

    fn is_half_empty(&self) -> bool {
        self.buckets
            .iter()
            .any(|bucket| bucket.free_at_renewal > 0 && bucket.free() <= bucket.free_at_renewal / 2)
    }

    fn start_new_generation(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        (self.last_call, self.first_report, self.acknowledged, self.call_open) =
            (0, 0, true, false);
        self.until = Timestamp::UNIX_EPOCH;
    }

    /// Returns a call without amounts.
    fn call(&self) -> LeaseCall {
        let mut id = self.id;
        id.0[12..].copy_from_slice(&self.generation.to_be_bytes());
        let (call_number, first_report) = (self.last_call, self.first_report);
        let wanted = LeaseRequest { id, call_number, first_report, ..LeaseRequest::default() };
        LeaseCall { used: Amounts::new(), wanted }
    }
}

/// The number of renewals per lease duration.
const RENEWALS_PER_LEASE: u32 = 3;

/// The maximum number of early renewals per lease duration, made when a lease is half empty.
const EARLY_RENEWALS_PER_LEASE: u32 = 16;

/// The fraction (1/16) of its duration by which a lease ends earlier here than on the server.
const DRIFT_DIVISOR: u32 = 16;
