use super::{Bucket, Rule, Shortfall, Wait};
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// Whether `cost` fits into every bucket now; changes nothing.
///
/// `rules` and `buckets` run side by side. A dimension that the cost doesn't use is not looked at.
///
/// # Errors
/// The [`Shortfall`] with the longest wait.
pub fn check(
    rules: &[Rule],
    buckets: &[Bucket],
    cost: &Cost,
    now: Timestamp,
) -> Result<(), Shortfall> {
    let Err(mut longest) = check_at(rules, buckets, cost, now) else { return Ok(()) };
    // A window that is open now may have closed by then: a few times at most, if they are few.
    let mut rounds = ROUNDS;
    while let Wait::At(then) = longest.wait
        && rounds > 0
        && rules.iter().any(Rule::closes)
        && let Err(next) = check_at(rules, buckets, cost, then)
        && next.wait > longest.wait
    {
        longest = next;
        rounds -= 1;
    }
    Err(longest)
}

/// Takes or holds `cost` in every bucket, without asking whether it fits.
#[inline]
pub fn commit(rules: &[Rule], buckets: &mut [Bucket], cost: &Cost, now: Timestamp) {
    for (rule, bucket) in rules.iter().zip(buckets) {
        let amount = rule.amount(cost);
        if amount > 0 {
            bucket.reserve(rule, amount, now);
        }
    }
}

/// [`check`], then [`commit`]: all buckets or none.
///
/// # Errors
/// The [`Shortfall`] with the longest wait; every bucket is as it was.
#[inline]
pub fn reserve(
    rules: &[Rule],
    buckets: &mut [Bucket],
    cost: &Cost,
    now: Timestamp,
) -> Result<(), Shortfall> {
    if !fits(rules, buckets, cost, now) {
        check(rules, buckets, cost, now)?;
    }
    commit(rules, buckets, cost, now);
    Ok(())
}

/// Whether it is plain that `cost` fits: the way that nearly every request goes. `false` says
/// nothing; [`check`] knows.
#[inline]
pub fn fits(rules: &[Rule], buckets: &[Bucket], cost: &Cost, now: Timestamp) -> bool {
    rules.iter().zip(buckets).all(|(rule, bucket)| {
        let amount = rule.amount(cost);
        amount == 0 || bucket.fits(rule, amount, now)
    })
}

/// Ends a reservation of `reserved` that was made at `sent`: it took `actual`.
#[inline]
pub fn settle(
    rules: &[Rule],
    buckets: &mut [Bucket],
    (sent, reserved): (Timestamp, &Cost),
    actual: &Cost,
    now: Timestamp,
) {
    for (rule, bucket) in rules.iter().zip(buckets) {
        let (reserved, actual) = (rule.amount(reserved), rule.amount(actual));
        if rule.holds() {
            bucket.drop_hold(reserved);
            bucket.take(rule, actual, now);
        } else if actual != reserved {
            bucket.correct(rule, sent, reserved, actual, now);
        }
    }
}

/// Undoes a reservation of `reserved` that was made at `sent`: the request never left.
pub fn release(
    rules: &[Rule],
    buckets: &mut [Bucket],
    (sent, reserved): (Timestamp, &Cost),
    now: Timestamp,
) {
    for (rule, bucket) in rules.iter().zip(buckets) {
        let reserved = rule.amount(reserved);
        if rule.holds() {
            bucket.drop_hold(reserved);
        } else if reserved > 0 {
            bucket.give_back(rule, reserved, sent, now);
        }
    }
}

/// Takes `cost` from every bucket, whether it fits or not: a request that went past the limiter.
pub fn charge(rules: &[Rule], buckets: &mut [Bucket], cost: &Cost, now: Timestamp) {
    for (rule, bucket) in rules.iter().zip(buckets) {
        bucket.take(rule, rule.amount(cost), now);
    }
}

#[inline]
fn check_at(
    rules: &[Rule],
    buckets: &[Bucket],
    cost: &Cost,
    now: Timestamp,
) -> Result<(), Shortfall> {
    let mut longest: Option<Shortfall> = None;
    for (index, (rule, bucket)) in rules.iter().zip(buckets).enumerate() {
        let amount = rule.amount(cost);
        if amount == 0 {
            continue;
        }
        if let Err(wait) = bucket.check(rule, amount, now)
            && longest.is_none_or(|l| wait > l.wait)
        {
            longest = Some(Shortfall { rule: index, wait });
        }
    }
    longest.map_or(Ok(()), Err)
}

/// So many windows that close one after the other are waited for in one answer. Seven rules need no
/// more than 15; beyond that the answer may be too early, but it comes.
const ROUNDS: u32 = 64;
