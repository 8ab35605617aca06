use super::{Bucket, Rule, Shortfall, Wait};
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// Checks that `cost` fits every bucket now, without changing anything.
///
/// `rules` and `buckets` have the same length and order. Dimensions with an amount of 0 are skipped.
///
/// # Errors
/// Returns the [`Shortfall`] with the longest wait. It is [`Wait::Never`] if a bucket is missing, is one too
/// many, or is of another algorithm than its rule.
pub fn check(
    rules: &[Rule],
    buckets: &[Bucket],
    cost: &Cost,
    now: Timestamp,
) -> Result<(), Shortfall> {
    let Err(mut longest) = check_at(rules, buckets, cost, now) else { return Ok(()) };
    // Another window may be closed at that time, which can repeat a few times.
    let mut rounds = MAX_ROUNDS;
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

/// Takes or holds `cost` in every bucket, without a check.
#[inline]
pub fn commit(rules: &[Rule], buckets: &mut [Bucket], cost: &Cost, now: Timestamp) {
    for (rule, bucket) in rules.iter().zip(buckets) {
        let amount = rule.amount(cost);
        if amount > 0 {
            bucket.reserve(rule, amount, now);
        }
    }
}

/// Reserves `cost` in all buckets or none: [`check`], then [`commit`].
///
/// # Errors
/// Returns the [`Shortfall`] with the longest wait. The buckets are then unchanged.
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

/// Checks quickly that `cost` fits every bucket, as it does for most requests. `false` means unknown:
/// [`check`] decides.
#[inline]
pub fn fits(rules: &[Rule], buckets: &[Bucket], cost: &Cost, now: Timestamp) -> bool {
    let fits = |(rule, bucket): (&Rule, &Bucket)| {
        let amount = rule.amount(cost);
        amount == 0 || bucket.fits(rule, amount, now)
    };
    rules.len() == buckets.len() && rules.iter().zip(buckets).all(fits)
}

/// Ends a reservation that was made at `sent`, with the `actual` amounts in place of the `reserved` ones.
#[inline]
pub fn settle(
    rules: &[Rule],
    buckets: &mut [Bucket],
    sent: Timestamp,
    reserved: &Cost,
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

/// Cancels a reservation that was made at `sent`: the request was never sent.
pub fn release(
    rules: &[Rule],
    buckets: &mut [Bucket],
    sent: Timestamp,
    reserved: &Cost,
    now: Timestamp,
) {
    for (rule, bucket) in rules.iter().zip(buckets) {
        let reserved = rule.amount(reserved);
        if rule.holds() {
            bucket.drop_hold(reserved);
        } else if reserved > 0 {
            bucket.refund(rule, reserved, sent, now);
        }
    }
}

/// Takes `cost` from every bucket without a check, for a request that was sent without the limiter.
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
    if rules.len() != buckets.len() {
        let unmatched = buckets.len().min(rules.len().saturating_sub(1));
        return Err(Shortfall { rule: unmatched, wait: Wait::Never });
    }
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

/// The maximum number of closed windows that one check takes into account. Seven rules need at most 15.
/// Beyond the maximum, the returned time may be too early.
const MAX_ROUNDS: u32 = 64;
