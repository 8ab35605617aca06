use std::cmp::Ordering;
use std::time::Duration;

use smallvec::SmallVec;

use crate::quota::{Dimension, Window};
use crate::stated::LimitReading;
use crate::timestamp::Timestamp;

/// Evidence in the headers of responses that a provider's limits are buckets that refill all the time, and not
/// windows: the amounts of a bucket that limits of an unknown algorithm don't have.
///
/// - The remaining requests rise from response to response, by no more than a bucket refills, although no request of
///   the key can have left a window yet.
/// - Reset and remaining amount change in proportion: a bucket needs longer to be full the less it holds, while
///   the end of a window comes nearer.
#[derive(Debug)]
pub(super) struct Refill {
    since: Timestamp,
    limits: SmallVec<[LimitEvidence; 2]>,
}

/// The evidence about one limit.
#[derive(Debug)]
struct LimitEvidence {
    dimension: Dimension,
    window: Window,
    limit: u64,
    last: Seen,
    rises: u32,
    /// The remaining amount and the reset that later ones are compared with.
    reset: Option<(u64, Duration)>,
    proportional: u32,
}

/// A remaining amount in a response.
#[derive(Debug, Clone, Copy)]
struct Seen {
    left: u64,
    sent_at: Timestamp,
    answered_at: Timestamp,
}

impl Refill {
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since, limits: SmallVec::new() }
    }

    pub(super) fn observe(
        &mut self,
        readings: &[LimitReading],
        sent_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        let mut is_shown = false;
        for reading in readings.iter().filter(|reading| reading.window < Window::DAY) {
            let (Some(limit), Some(left)) = (reading.limit, reading.remaining) else { continue };
            let seen = Seen { left, sent_at, answered_at: now };
            let same = |known: &LimitEvidence| {
                known.dimension == reading.dimension && known.window == reading.window
            };
            match self.limits.iter_mut().find(|known| same(known)) {
                Some(known) if known.limit == limit => {
                    // Requests from before `since` are at most some latencies older.
                    if now - self.since < reading.window.as_duration() / 2 {
                        known.compare_remaining(seen);
                    }
                    known.compare_reset(left, reading.reset);
                    is_shown |= known.rises >= PROOF || known.proportional >= PROOF;
                }
                Some(known) => *known = LimitEvidence::new(reading, limit, seen),
                None => self.limits.push(LimitEvidence::new(reading, limit, seen)),
            }
        }
        is_shown
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.since = self.since.saturating_sub(back);
        for limit in &mut self.limits {
            let Seen { sent_at, answered_at, .. } = &mut limit.last;
            (*sent_at, *answered_at) =
                (sent_at.saturating_sub(back), answered_at.saturating_sub(back));
        }
    }
}

impl LimitEvidence {
    fn new(reading: &LimitReading, limit: u64, last: Seen) -> Self {
        Self {
            dimension: reading.dimension.clone(),
            window: reading.window,
            limit,
            last,
            rises: 0,
            reset: reading.reset.map(|reset| (last.left, reset)),
            proportional: 0,
        }
    }

    /// Compares a remaining amount with the last one. Only requests count exactly one each: tokens that
    /// were reserved may be returned.
    fn compare_remaining(&mut self, seen: Seen) {
        let last = self.last;
        if self.dimension != Dimension::Requests || seen.sent_at < last.answered_at {
            return;
        }
        let most = self.refill_time(seen.left.saturating_sub(last.left.saturating_add(1)));
        // A window that ends returns at once all that was used in it.
        let is_refill = most <= seen.answered_at - last.sent_at;
        self.rises = match seen.left.cmp(&last.left) {
            Ordering::Greater if is_refill => self.rises + 1,
            Ordering::Equal => self.rises,
            _ => 0,
        };
        self.last = seen;
    }

    fn compare_reset(&mut self, left: u64, reset: Option<Duration>) {
        let (Some(reset), Some((before, then))) = (reset, self.reset) else { return };
        let expected = self.refill_time(before.saturating_sub(left));
        if left < before && (expected < LEAST_CHANGE || before - left < LEAST_UNITS) {
            return;
        }
        if left < before {
            let tolerance = ROUNDING + self.refill_time(1);
            let is_proportional = reset.saturating_sub(then).abs_diff(expected) <= tolerance;
            self.proportional = if is_proportional { self.proportional + 1 } else { 0 };
        }
        self.reset = Some((left, reset));
    }

    /// Returns the time in which a bucket refills by this amount.
    fn refill_time(&self, amount: u64) -> Duration {
        let nanos = u128::from(amount) * u128::from(self.window.as_nanos());
        let nanos = nanos / u128::from(self.limit.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The number of observations that show a bucket.
const PROOF: u32 = 3;

/// Resets are written to the millisecond, or rounded to a few.
const ROUNDING: Duration = Duration::from_millis(10);

/// The least change of a reset, and of the remaining amount, that exceeds rounding clearly.
const LEAST_CHANGE: Duration = Duration::from_millis(100);
const LEAST_UNITS: u64 = 4;

#[cfg(test)]
mod tests;
