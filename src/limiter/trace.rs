use std::collections::VecDeque;

use smallvec::SmallVec;

use super::permit::Permit;
use super::slot::Slot;
use crate::provider::LimitReading;
use crate::quota::{Dimension, Limit};

/// What the provider had left of each limit, if nobody else used it, since it first said what was:
/// the lows, to be compared with what it said.
#[derive(Debug, Default)]
pub(super) struct Trace {
    since: u64,
    /// For each rule: when there was how little, of the times after which there was never less.
    lows: SmallVec<[VecDeque<(u64, u64)>; 3]>,
    /// Whether a limit of the provider's that is lower has been told of.
    told: bool,
}

/// A limit of which the provider says that it is lower than the key's.
struct Lower {
    dimension: Dimension,
    ours: u64,
    theirs: u64,
}

impl Permit {
    /// Takes what the headers of a response say is left over, while its permit is open. They speak
    /// of the limits of the key that was named first.
    ///
    /// What the provider has left lowers what we take to be left, as soon as it proves that somebody
    /// else uses the account: if it is less than there can ever have been, from the time at which
    /// this request was granted until now, with everything counted that was sent by then. What is
    /// missing is taken, less what may be in flight or rounded. So it makes no difference when the provider wrote the header
    /// down, how long the response took, and what was sent meanwhile.
    ///
    /// - Nothing is ever raised.
    /// - Half of the safety margin of a token bucket is allowed for requests that overtake each
    ///   other; what a reading may be off by ([`LimitReading::granularity`]); and, where what was
    ///   reserved only becomes a charge later, as much again as is in flight, which may take more
    ///   than was reserved.
    /// - A reading without a limit of the same dimension and window is ignored, and so is one with
    ///   more left than its limit. The first response of a key only starts the comparison.
    /// - A limit of the provider that is lower than the key's is logged once, as a warning, as long
    ///   as the key is kept ([`prune`](super::Limiter::prune)). Of quotas
    ///   that were [learned](super::Feedback::learn) the limits follow the headers; quotas that were
    ///   set stay as they are.
    ///
    /// For a key whose readings are compared, what is left is noted whenever something is taken.
    pub fn observe(&self, readings: &[LimitReading]) {
        if readings.iter().any(|reading| reading.remaining.is_some()) && !self.is_remote() {
            self.place().observe(readings, self.granted_at());
        }
    }
}

impl super::place::Place {
    fn observe(&self, readings: &[LimitReading], granted_at: u64) {
        let (mut keys, now) = self.shard.lock();
        let slot = &mut keys.slots[self.slot];
        if slot.generation() != self.generation {
            return;
        }
        slot.recover(now, &self.shard.core);
        let lower = slot.observe(readings, granted_at, now);
        let key = lower.first().map(|_| slot.key.clone()).unwrap_or_default();
        drop(keys);
        self.shard.core.events.flush();
        for Lower { dimension, ours, theirs } in lower {
            let (key, dimension) = (key.as_str(), dimension.as_str());
            tracing::warn!(
                key,
                dimension,
                ours,
                theirs,
                "the provider's limit is below the quota's"
            );
        }
    }
}

impl Slot {
    fn observe(&mut self, readings: &[LimitReading], granted_at: u64, now: u64) -> Vec<Lower> {
        if self.seen().is_none_or(|line| line.trace.is_none()) {
            self.line().trace = Some(Box::default());
            self.retrace(now);
        } else {
            self.compare(readings, granted_at, now);
        }
        self.lower_limits(readings)
    }

    fn compare(&mut self, readings: &[LimitReading], granted_at: u64, now: u64) {
        for reading in readings {
            let Some(index) = self.plan.rules.iter().position(|rule| is_of(rule.limit(), reading))
            else {
                continue;
            };
            let Some(left) = left(reading) else { continue };
            let trace = self.seen().and_then(|line| line.trace.as_deref());
            let low = trace.and_then(|trace| trace.low(index, granted_at));
            let (rule, bucket) = (&self.plan.rules[index], &mut self.buckets[index]);
            let allowed = bucket.slack(rule).saturating_add(reading.granularity);
            if let Some(low) = low.filter(|low| left.saturating_add(allowed) < *low) {
                // The part of the margin that is allowed for is taken with the rest: what overtook
                // is there by now, and without it refusals would go on until the margin is used up.
                let unproven = bucket.level(rule, now).held.saturating_add(reading.granularity);
                let guess = (low - left).saturating_sub(unproven);
                bucket.charge(rule, guess, now);
                if let Some((ledger, ..)) = self.ledger() {
                    ledger.guess(index, guess);
                }
                self.note(now);
            }
        }
    }

    /// Starts the comparison anew, if there is one: the limits have changed.
    pub(super) fn retrace(&mut self, now: u64) {
        if let Some((trace, plan, _)) = self.traced() {
            trace.since = now;
            let none = std::iter::repeat_with(VecDeque::new);
            trace.lows = none.take(plan.rules.len()).collect();
        }
        self.note(now);
    }

    /// Notes what is left, if that is compared with what the provider says: after whatever lessens
    /// it.
    #[inline]
    pub(super) fn note(&mut self, now: u64) {
        if self.seen().is_some() {
            self.note_lows(now);
        }
    }

    #[inline(never)]
    fn note_lows(&mut self, now: u64) {
        let Some((trace, plan, buckets)) = self.traced() else { return };
        for ((rule, bucket), lows) in plan.rules.iter().zip(buckets).zip(&mut trace.lows) {
            note(lows, now, bucket.left(rule, now));
        }
    }

    /// The provider's limits that are below the key's, unless they were told of.
    fn lower_limits(&mut self, readings: &[LimitReading]) -> Vec<Lower> {
        let told = |slot: &Self| slot.seen()?.trace.as_deref().map(|trace| trace.told);
        if told(self) != Some(false) {
            return Vec::new();
        }
        let lower = |reading: &LimitReading| {
            let rule = self.full().rules.iter().find(|rule| is_of(rule.limit(), reading))?;
            let (dimension, ours) = (reading.dimension.clone(), rule.limit().amount());
            let theirs = reading.limit.filter(|theirs| *theirs > 0 && *theirs < ours)?;
            Some(Lower { dimension, ours, theirs })
        };
        let lower: Vec<_> = readings.iter().filter_map(lower).collect();
        if let Some((trace, ..)) = self.traced() {
            trace.told = !lower.is_empty();
        }
        lower
    }
}

impl Trace {
    /// The least that was left since `time`, which is one at which something was taken.
    fn low(&self, rule: usize, time: u64) -> Option<u64> {
        let lows = self.lows.get(rule).filter(|_| time >= self.since)?;
        lows.get(lows.partition_point(|(at, _)| *at < time)).map(|(_, left)| *left)
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.since = self.since.saturating_sub(back);
        for (at, _) in self.lows.iter_mut().flatten() {
            *at = at.saturating_sub(back);
        }
    }
}

fn note(lows: &mut VecDeque<(u64, u64)>, now: u64, left: u64) {
    while lows.back().is_some_and(|(_, last)| *last >= left) {
        lows.pop_back();
    }
    lows.push_back((now, left));
    if lows.len() > LOWS
        && let Some((_, least)) = lows.pop_front()
        && let Some((_, next)) = lows.front_mut()
    {
        // Too little for the requests in between, so that nothing is proven that isn't so.
        *next = least;
    }
}

fn is_of(limit: &Limit, reading: &LimitReading) -> bool {
    *limit.dimension() == reading.dimension
        && limit.window() == reading.window
        && *limit.dimension() != Dimension::Concurrency
}

/// What is left, where that makes sense.
fn left(reading: &LimitReading) -> Option<u64> {
    reading.remaining.filter(|left| reading.limit.is_none_or(|limit| *left <= limit))
}

/// Lows that are kept of each limit.
const LOWS: usize = 32;
