use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use crate::key::limits::Limits;
use crate::timestamp::Timestamp;

/// The least that the provider can have had left of each limit, if the account has no other user:
/// compared with the remaining amounts that the provider's headers state.
#[derive(Debug)]
pub(super) struct Trace {
    since: Timestamp,
    /// For each rule: times and amounts, ascending in both. After a time there was never less left
    /// than its amount.
    lows: SmallVec<[VecDeque<(Timestamp, u64)>; 3]>,
    /// A limit of the provider's that is lower than the key's was reported.
    pub(super) is_lower_reported: bool,
}

impl Trace {
    /// A trace that starts now.
    pub(super) fn new(rules: usize, now: Timestamp) -> Self {
        let lows = std::iter::repeat_with(VecDeque::new).take(rules).collect();
        Self { since: now, lows, is_lower_reported: false }
    }

    /// Starts anew: the limits have changed.
    pub(super) fn restart(&mut self, rules: usize, now: Timestamp) {
        *self = Self { is_lower_reported: self.is_lower_reported, ..Self::new(rules, now) };
    }

    /// Notes the amounts left, after they became less.
    pub(super) fn note(&mut self, limits: &Limits, now: Timestamp) {
        for ((rule, bucket), lows) in limits.iter().zip(&mut self.lows) {
            note(lows, now, bucket.left(rule, now));
        }
    }

    /// Returns the least that was left of a rule since `time`, which is one at which it was noted.
    pub(super) fn low(&self, rule: usize, time: Timestamp) -> Option<u64> {
        let lows = self.lows.get(rule).filter(|_| time >= self.since)?;
        lows.get(lows.partition_point(|(at, _)| *at < time)).map(|(_, left)| *left)
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.since = self.since.saturating_sub(back);
        for (at, _) in self.lows.iter_mut().flatten() {
            *at = at.saturating_sub(back);
        }
    }
}

fn note(lows: &mut VecDeque<(Timestamp, u64)>, now: Timestamp, left: u64) {
    while lows.back().is_some_and(|(_, last)| *last >= left) {
        lows.pop_back();
    }
    lows.push_back((now, left));
    if lows.len() > LOWS
        && let Some((_, least)) = lows.pop_front()
        && let Some((_, next)) = lows.front_mut()
    {
        // Too little for the requests in between, so that no use by others is proven that isn't so.
        *next = least;
    }
}

/// Lows that are kept of each limit.
const LOWS: usize = 32;
