use std::collections::VecDeque;

use smallvec::SmallVec;

/// How often a limit must have fallen to explain refusals.
///
/// A limit that refuses a request has nothing left. So what it accepts until the next refusal bounds its rate from
/// below, whatever it has saved up in pauses, and from above by the time in which requests were sent. A stretch that lies
/// below an earlier one says that the limit has fallen, or that there is none: refusals by chance follow the speed at
/// which requests are sent, and don't bound it. Where more is accepted again, the fall is taken back.
#[derive(Debug, Default)]
pub(super) struct Levels {
    /// The stretches since the last fall.
    stretches: VecDeque<Stretch>,
    /// The rates that were accepted for sure, each one before another fall.
    accepted: SmallVec<[f64; 4]>,
    /// The stretches since the last of them was accepted.
    since: usize,
}

/// The time between two refusals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// What was accepted.
    pub(super) accepted: f64,
    pub(super) seconds: f64,
    /// Seconds in which requests were sent as fast as the pace allowed: neither pauses nor idle times, in which a full
    /// bucket gains nothing.
    pub(super) busy: f64,
    /// The costs of the refused requests before and after it, up to which the bucket may have held something.
    pub(super) costs: (f64, f64),
}

impl Levels {
    /// Adds a stretch. Returns how often the limit must have fallen.
    pub(super) fn add(&mut self, stretch: Stretch) -> usize {
        self.stretches.push_back(stretch);
        self.since += 1;
        let (mut lower, mut upper) = (0.0_f64, (f64::INFINITY, 0, 0.0));
        let (mut accepted, mut seconds, mut busy) = (0.0, 0.0, 0.0);
        for (index, part) in self.stretches.iter().rev().enumerate() {
            accepted += part.accepted;
            seconds += part.seconds;
            busy += part.busy;
            lower = lower.max((accepted - part.costs.0) / seconds);
            let bound = (accepted + stretch.costs.1) / busy;
            if index < self.since && bound < upper.0 {
                upper = (bound, index + 1, lower);
            }
        }
        let Some(last) = self.accepted.last_mut() else {
            self.accepted.push(lower);
            return 0;
        };
        if upper.0 * MARGIN < *last {
            let (_, stretches, lower) = upper;
            self.stretches.drain(..self.stretches.len() - stretches);
            self.accepted.push(lower);
            self.since = 0;
        } else if lower > *last {
            (*last, self.since) = (lower, 0);
            while let [.., before, last] = self.accepted[..]
                && last >= before
            {
                self.accepted.remove(self.accepted.len() - 2);
            }
        }
        if self.stretches.len() > MOST {
            self.stretches.pop_front();
            self.accepted.drain(..self.accepted.len() - 1);
        }
        self.accepted.len() - 1
    }

    /// Begins again. Returns the highest rate that was accepted.
    pub(super) fn take(&mut self) -> f64 {
        std::mem::take(self).accepted.first().copied().unwrap_or_default()
    }
}

/// The factor of a rate that isn't another one: costs are estimates, and requests travel for different times.
const MARGIN: f64 = 1.05;

/// The stretches after which a limit hasn't fallen but is a lower one. Chance needs fewer to slow requests down by this
/// margin.
const MOST: usize = 16;
