use super::Pace;
use crate::engine::Rule;
use crate::key::limits::Limits;
use crate::quota::{Dimension, Limit, Window};
use crate::timestamp::Timestamp;

/// Returns whether a refusal reduces the limit: it counts requests in flight, or has a window shorter
/// than a day.
pub(crate) fn is_rate(limit: &Limit) -> bool {
    *limit.dimension() == Dimension::Concurrency || limit.window() < Window::DAY
}

/// Returns the capacity of a key, as reported to other programs: the amount of its first rate, which is
/// its limit on requests in flight only if it has no other rate. 0 if the key has no rate.
pub(crate) fn capacity(limits: &Limits) -> u64 {
    let rates = || limits.plan.rules.iter().map(Rule::limit).filter(|limit| is_rate(limit));
    let first = rates().find(|limit| *limit.dimension() != Dimension::Concurrency);
    first.or_else(|| rates().next()).map_or(0, Limit::amount)
}

pub(super) fn has_rate_of(limits: &Limits, dimension: &Dimension) -> bool {
    let mut rates = limits.plan.rules.iter().filter(|rule| is_rate(rule.limit()));
    rates.any(|rule| rule.dimension() == dimension)
}

/// Returns the amount of a limit after a refusal, which may name a dimension.
pub(super) fn reduced_to(limit: &Limit, pace: Pace, named: Option<&Dimension>) -> u64 {
    let is_hit = is_rate(limit) && named.is_none_or(|named| limit.dimension() == named);
    if is_hit { pace.reduce(limit.amount()) } else { limit.amount() }
}

/// Returns the amount of a limit in the proportion of `new` to `current`, if it is a rate.
pub(super) fn in_proportion(limit: &Limit, new: u64, current: u64) -> u64 {
    if !is_rate(limit) {
        return limit.amount();
    }
    let part = u128::from(limit.amount()) * u128::from(new) / u128::from(current.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

pub(super) fn drain_rates(limits: &mut Limits, named: Option<&Dimension>, until: Timestamp) {
    for (rule, bucket) in limits.iter_mut() {
        if is_rate(rule.limit()) && named.is_none_or(|named| rule.dimension() == named) {
            bucket.drain(rule, until);
        }
    }
}
