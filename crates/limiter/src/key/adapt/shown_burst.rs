use std::time::Duration;

use crate::engine::{Bucket, Rule};
use crate::timestamp::Timestamp;

/// The most of a token bucket that headers have shown to be there at once.
///
/// A limit that is stated per minute may be enforced per second: the provider's bucket then holds a small part of
/// the limit, and a request more is refused however long the key was idle before. So what a bucket holds beyond
/// the shown amount is withheld when a request is sent, and returned by the response of that request if its
/// headers show more.
#[derive(Debug, Default)]
pub(super) struct ShownBurst {
    /// `None` as long as headers have shown nothing.
    most: Option<u64>,
    withheld: u64,
    /// The time at which it was withheld last.
    withheld_at: Timestamp,
}

impl ShownBurst {
    /// Notes the remaining amount in the headers of a response. `used` is the most that the key itself may have
    /// used of the bucket when the provider counted.
    pub(super) fn see(&mut self, rule: &Rule, remaining: u64, used: impl FnOnce() -> u64) {
        if rule.refills() {
            let first = || remaining.saturating_add(used());
            self.most = Some(self.most.map_or_else(first, |most| most.max(remaining)));
        }
    }

    /// Returns what was withheld before this request was sent, as far as the headers of its response show it:
    /// more remained than the `lowest` amount that was expected.
    pub(super) fn take_shown(&mut self, remaining: u64, lowest: u64, sent_at: Timestamp) -> u64 {
        match sent_at >= self.withheld_at {
            true => std::mem::take(&mut self.withheld).min(remaining.saturating_sub(lowest)),
            false => 0,
        }
    }

    /// Takes from a bucket what it holds beyond the shown amount.
    pub(super) fn withhold(&mut self, rule: &Rule, bucket: &mut Bucket, now: Timestamp) {
        let Some(most) = self.most.filter(|most| *most < rule.capacity()) else { return };
        let unseen = bucket.level(rule, now).available.saturating_sub(most);
        if unseen > 0 {
            bucket.charge(rule, unseen, now);
            (self.withheld, self.withheld_at) = (self.withheld.saturating_add(unseen), now);
        }
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.withheld_at = self.withheld_at.saturating_sub(back);
    }
}
