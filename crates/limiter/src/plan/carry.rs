use super::plan::{Buckets, Plan};
use crate::engine::{Bucket, Rule};
use crate::timestamp::Timestamp;

/// The change of a key from one plan to another.
impl Plan {
    /// Returns this plan as the successor of `old` in a new version: rules of dimensions that were limited before
    /// keep the version since which requests count to them.
    pub(crate) fn succeed(&self, old: &Self, version: u32) -> Self {
        let since = |rule: &Rule| match old.predecessor_of(rule) {
            Some(index) if old.rules[index].holds() == rule.holds() => old.since[index],
            _ => version,
        };
        let same_since = |rule: &Rule| match old.same_as(rule) {
            Some(index) if old.rules[index].holds() == rule.holds() => old.same_since[index],
            _ => version,
        };
        let since = self.rules.iter().map(since).collect();
        let same_since = self.rules.iter().map(same_since).collect();
        let mut plan = self.clone();
        plan.fastest = old.fastest(&self.rules);
        (plan.since, plan.same_since, plan.version) = (since, same_since, version);
        plan
    }

    /// Returns the largest amounts of these rules in themselves, this plan and those before it, if one was larger than
    /// their own.
    pub(super) fn fastest(&self, rules: &[Rule]) -> Option<Box<[u64]>> {
        let is_slower = |rule: &Rule| self.fastest_of(rule) > rule.limit().amount();
        let fastest = |rule: &Rule| self.fastest_of(rule).max(rule.limit().amount());
        rules.iter().any(is_slower).then(|| rules.iter().map(fastest).collect())
    }

    /// Returns the largest amount with which this plan, or one before it, has refilled the bucket of a rule; 0 if it has no
    /// such bucket.
    fn fastest_of(&self, rule: &Rule) -> u64 {
        let fastest = |index: usize| match &self.fastest {
            Some(fastest) => fastest[index],
            None => self.rules[index].limit().amount(),
        };
        if rule.refills() { self.same_as(rule).map_or(0, fastest) } else { 0 }
    }

    /// Returns `true` if a bucket of this plan has refilled faster before.
    pub(crate) fn was_faster(&self) -> bool {
        self.fastest.is_some()
    }

    /// Returns the time since which the rule's present rate has refilled as much as the fastest one before can have
    /// refilled since `sent`.
    pub(crate) fn refilled_since(&self, rule: usize, sent: Timestamp, now: Timestamp) -> Timestamp {
        let Some(fastest) = &self.fastest else { return sent };
        let (fastest, amount) = (fastest[rule], self.rules[rule].limit().amount().max(1));
        let elapsed = u128::from(now.nanos_since(sent)) * u128::from(fastest.max(amount));
        let elapsed = elapsed.div_ceil(u128::from(amount));
        now.sub_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Returns the plan after a reset, in a new version: earlier requests no longer count as usage, so
    /// that they return nothing when they end; amounts in flight stay held.
    pub(crate) fn renewed(&self, version: u32) -> Self {
        let renewed = |since: &[u32]| {
            let since = self.rules.iter().zip(since);
            since.map(|(rule, &since)| if rule.holds() { since } else { version }).collect()
        };
        let (since, same_since) = (renewed(&self.since), renewed(&self.same_since));
        let mut plan = self.clone();
        (plan.since, plan.same_since, plan.version) = (since, same_since, version);
        plan
    }

    /// Returns the buckets of a key that changes from `old` to this plan. Usage and held amounts are
    /// kept. A limit with another window or algorithm than before counts what the old limits of its dimension know.
    pub(crate) fn carry(&self, old: &Self, buckets: &[Bucket], now: Timestamp) -> Buckets {
        let carry = |rule: &Rule| match old.same_as(rule) {
            Some(index) => buckets[index].carry(&old.rules[index], rule, now),
            None => self.convert(rule, old, buckets, now),
        };
        self.rules.iter().map(carry).collect()
    }

    /// Returns the bucket of a rule that `old` doesn't have.
    fn convert(&self, rule: &Rule, old: &Self, buckets: &[Bucket], now: Timestamp) -> Bucket {
        let Some(predecessor) = old.predecessor_of(rule) else { return Bucket::new(rule) };
        let known = old.rules.iter().zip(buckets);
        let known = known.filter(|(known, _)| known.dimension() == rule.dimension());
        let is_removed = |known: &Rule| !self.rules.iter().any(|new| new.continues(known));
        let is_replaced = known.clone().any(|(known, _)| is_removed(known));
        // Callers may alternate limits that they give, and a provider states what is left of the limits that replace
        // assumed ones.
        let is_assumed =
            self.given.is_some() || old.given.is_some() || old.is_built_in || !old.known;
        let window = rule.limit().window();
        let used = |bucket: &Bucket| bucket.level(rule, now).used;
        let bucket = if is_replaced && !is_assumed && !rule.is_total() {
            // All that the old limit can have admitted. Limits that know the whole window know enough, so that the
            // least amount is true; of others, the one with the longest window knows most.
            let bucket = |(known, bucket): (&Rule, &Bucket)| {
                let bucket = Bucket::with_usage(rule, &bucket.usage(known, now), now);
                let length = known.limit().window();
                let knows_all = length >= window && !known.is_total();
                let rank = if knows_all { used(&bucket) } else { u64::MAX - length.as_nanos() };
                ((!knows_all, rank), bucket)
            };
            known.map(bucket).min_by_key(|(rank, _)| *rank).map(|(_, bucket)| bucket)
        } else {
            // What is sure to have been used within the window.
            let is_sure =
                |(known, _): &(&Rule, &Bucket)| known.limit().window() <= window || known.has_log();
            let sure = known.filter(is_sure);
            let bucket = |(known, bucket): (&Rule, &Bucket)| {
                Bucket::with_usage(rule, &bucket.known_usage(known, now), now)
            };
            sure.map(bucket).max_by_key(|bucket| used(bucket))
        };
        let mut bucket = bucket.unwrap_or_else(|| Bucket::new(rule));
        bucket.continue_holds(buckets[predecessor].held(), &old.rules[predecessor], rule, now);
        bucket
    }

    /// Returns the index of the rule that counts the same as a rule of another plan, by the same algorithm.
    fn same_as(&self, rule: &Rule) -> Option<usize> {
        self.rules.iter().position(|own| rule.continues(own))
    }

    /// Returns the index of the rule whose requests in flight count to a rule of the next plan: the same one, or that
    /// of the same dimension to which requests have counted for longest.
    fn predecessor_of(&self, rule: &Rule) -> Option<usize> {
        let dimension = || {
            let of_dimension = |index: &usize| self.rules[*index].dimension() == rule.dimension();
            (0..self.rules.len()).filter(of_dimension).min_by_key(|&index| self.since[index])
        };
        self.same_as(rule).or_else(dimension)
    }

    /// Returns `true` if requests that were granted under a plan of this version count to the rule.
    pub(crate) fn has_since(&self, rule: usize, version: u32) -> bool {
        self.since[rule] <= version
    }

    /// Returns `true` if the rule gives back what a request of this version, which was charged when it was sent, has
    /// not used. Of a rule that had another window or algorithm then, it is unknown at what time it counts the request.
    pub(crate) fn gives_back(&self, rule: usize, version: u32) -> bool {
        self.same_since[rule] <= version
    }
}
