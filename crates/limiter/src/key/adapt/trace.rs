use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use super::shown_burst::ShownBurst;
use crate::key::limits::Limits;
use crate::timestamp::Timestamp;

/// The lowest remaining amount of each limit over time, if the account has no other user. The remaining
/// amounts in the provider's headers are compared with it.
#[derive(Debug)]
pub(super) struct Trace {
    since: Timestamp,
    /// For each rule, times and amounts, ascending in both. After each time, at least its amount
    /// remained.
    lows: SmallVec<[VecDeque<(Timestamp, u64)>; 3]>,
    /// For each rule, what headers have shown of its burst.
    bursts: SmallVec<[ShownBurst; 3]>,
    /// A lower limit of the provider was reported.
    pub(super) is_lower_reported: bool,
}

impl Trace {
    /// Creates a trace that starts now.
    pub(super) fn new(rules: usize, now: Timestamp) -> Self {
        let lows = std::iter::repeat_with(VecDeque::new).take(rules).collect();
        let bursts = std::iter::repeat_with(ShownBurst::default).take(rules).collect();
        Self { since: now, lows, bursts, is_lower_reported: false }
    }

    /// Restarts the trace because the limits have changed.
    pub(super) fn restart(&mut self, rules: usize, now: Timestamp) {
        *self = Self { is_lower_reported: self.is_lower_reported, ..Self::new(rules, now) };
    }

    /// Notes the remaining amounts, after they decreased.
    pub(super) fn note(&mut self, limits: &Limits, now: Timestamp) {
        for ((rule, bucket), lows) in limits.iter().zip(&mut self.lows) {
            note(lows, now, bucket.left(rule, now));
        }
    }

    /// Returns the lowest remaining amount of a rule since `time`, at which the amounts were noted; `None`
    /// if the trace started later.
    pub(super) fn lowest_since(&self, rule: usize, time: Timestamp) -> Option<u64> {
        let lows = self.lows.get(rule).filter(|_| time >= self.since)?;
        lows.get(lows.partition_point(|(at, _)| *at < time)).map(|(_, left)| *left)
    }

    /// Returns what headers have shown of a rule's burst.
    pub(super) fn burst_mut(&mut self, rule: usize) -> Option<&mut ShownBurst> {
        self.bursts.get_mut(rule)
    }

    /// Takes from the buckets what they hold beyond the bursts that headers have shown.
    pub(super) fn withhold(&mut self, limits: &mut Limits, now: Timestamp) {
        for ((rule, bucket), burst) in limits.iter_mut().zip(&mut self.bursts) {
            burst.withhold(rule, bucket, now);
        }
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.since = self.since.saturating_sub(back);
        self.bursts.iter_mut().for_each(|burst| burst.rebase(back));
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
        // Lower than the true amount since then, so that no usage is wrongly attributed to others.
        *next = least;
    }
}

/// The number of entries that are kept of each limit.
const LOWS: usize = 32;
