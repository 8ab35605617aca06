use core::time::Duration;

use super::rule::Spec;
use super::{Bucket, Rule, Wait};
use crate::timestamp::Timestamp;

impl Bucket {
    /// Returns a time before which this amount cannot be admitted, in parts of any size: a lower bound. Windows
    /// of a clock or calendar have none.
    pub(crate) fn earliest(&self, rule: &Rule, amount: u128, now: Timestamp) -> Timestamp {
        let (limit, window) = (rule.limit.amount(), u128::from(rule.limit.window().as_nanos()));
        let first_part = |part: u128| {
            let part = u64::try_from(part).unwrap_or(u64::MAX);
            match self.check(rule, part, now) {
                Err(Wait::At(time)) => time,
                _ => now,
            }
        };
        let later = |time: Timestamp, nanos: u128| {
            time.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
        };
        let (limit, capacity) = (u128::from(limit), u128::from(rule.capacity()));
        if amount == 0 || matches!(rule.spec, Spec::Grid(_) | Spec::Concurrency(_)) {
            return now;
        }
        if amount <= capacity {
            return first_part(amount);
        }
        if let Spec::Token(_) = rule.spec {
            let rest = (amount - capacity).saturating_mul(window) / limit;
            return later(first_part(capacity), rest);
        }
        // Each further window admits the limit at most. Of fixed windows, the next one may start immediately.
        let windows = (amount - 1) / limit;
        let time = first_part(amount - windows * limit);
        let whole = if let Spec::Fixed(_) = rule.spec { windows - 1 } else { windows };
        later(time, whole.saturating_mul(window))
    }
}
