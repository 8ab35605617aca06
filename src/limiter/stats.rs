use super::shard::Core;
use super::slot::Slot;
use crate::engine::{self, Rule, Shortfall, Wait};
use crate::quota::{Cost, Dimension, Window};

/// The figures of one key at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStats {
    /// Each limit of the key, in the order of its quota.
    pub limits: Vec<LimitStats>,
    /// Requests that wait in the key's queue.
    pub waiting: usize,
    /// Until when the key cools down after a refusal, in nanoseconds since the epoch.
    pub cooling_until: Option<u64>,
}

/// The figures of one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitStats {
    /// What is counted.
    pub dimension: Dimension,
    /// The limit's amount now.
    pub limit: u64,
    /// The limit's amount in the key's quota: more than it is now while the key is reduced after a
    /// refusal.
    pub original: u64,
    /// The limit's window.
    pub window: Window,
    /// What counts against the limit now, rounded up.
    pub used: u64,
    /// What requests in flight have reserved and not yet used.
    pub held: u64,
    /// What a request could still take, the margin taken off; rounded down.
    pub available: u64,
    /// When the limit is all unused again, in nanoseconds since the epoch; a time that has passed if
    /// it is.
    pub fresh_at: u64,
}

impl KeyStats {
    /// Which limit has no room for a cost, by these figures.
    pub(super) fn short(&self, rules: &[Rule], cost: &Cost) -> Option<Shortfall> {
        let full = |(rule, limit): (&Rule, &LimitStats)| rule.amount(cost) > limit.available;
        let rule = rules.iter().zip(&self.limits).position(full)?;
        let wait = if rules[rule].can_hold(cost) { Wait::Unknown } else { Wait::Never };
        Some(Shortfall { rule, wait })
    }
}

impl Slot {
    pub(super) fn stats(&self, now: u64, core: &Core) -> KeyStats {
        let cooling_until = self.line.as_ref().map(|line| line.cooling_until);
        let recovered = self.recovered(now);
        let there = recovered.as_ref().map(|step| (&step.rules[..], &step.buckets));
        let (rules, buckets) = there.unwrap_or((&self.plan.rules, &self.buckets));
        let limits = rules.iter().zip(buckets).zip(&*self.full().rules);
        let elsewhere = core.backend.as_ref().and_then(|backend| backend.levels(&self.key, rules));
        let level = |at: usize, rule: &Rule, bucket: &engine::Bucket| {
            let known = elsewhere.as_ref().and_then(|levels| levels.get(at).copied());
            known.unwrap_or_else(|| bucket.level(rule, now))
        };
        let stats = |(at, ((rule, bucket), original)): (usize, ((&Rule, _), &Rule))| {
            stats(rule, original.limit().amount(), level(at, rule, bucket))
        };
        KeyStats {
            limits: limits.enumerate().map(stats).collect(),
            waiting: self.waiting(),
            cooling_until: cooling_until.filter(|&until| until > now),
        }
    }
}

fn stats(rule: &engine::Rule, original: u64, level: engine::Level) -> LimitStats {
    let limit = rule.limit();
    LimitStats {
        dimension: limit.dimension().clone(),
        limit: limit.amount(),
        original,
        window: limit.window(),
        used: level.used,
        held: level.held,
        available: level.available,
        fresh_at: level.fresh_at,
    }
}
