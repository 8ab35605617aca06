use std::time::Duration;

use super::lately::Lately;
use super::levels::{Levels, Stretch};
use super::pace::Pace;
use super::pause::Closure;
use super::send_log::SentRequest;
use super::units::{FIRST_BURST, MIN_AMOUNT, seconds_between};
use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// The rate of a limit as configured, from a quota, a header or a default.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfiguredRate {
    pub(crate) dimension: Dimension,
    /// Amount per second.
    pub(crate) per_second: f64,
    /// The amount that the limit allows at once.
    pub(crate) burst: f64,
    /// `true` if the limit is never exceeded, as that of a user; `false` if it is a starting point that
    /// evidence replaces, up and down.
    pub(crate) is_ceiling: bool,
}

/// The sums and the learned rate of one dimension.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) dimension: Dimension,
    pub(super) configured: Option<ConfiguredRate>,
    /// All charges sent.
    pub(super) sent: f64,
    /// The charges of refused requests since `start`.
    refused: f64,
    /// All charges of refused requests.
    all_refused: f64,
    /// The end of the last long closure, or the first request.
    opened: Option<Opened>,
    /// The first request, or the first one after a restart.
    began: Option<Began>,
    /// The first refusal of the last event that measured this dimension.
    start: Option<Start>,
    pub(super) pace: Option<Pace>,
    /// The mean cost of requests that were refused without a name, as a factor of the mean of all, and their number.
    refused_size: (f64, u32),
    pub(super) events: u32,
    pub(super) last_event: Timestamp,
    /// The start of the period in which a starting point may prove to be too low.
    trial: Option<Began>,
    /// What was accepted lately.
    lately: Lately,
    pub(super) levels: Levels,
    /// The provider counts in windows. What it accepts varies, so that one fall shows nothing.
    pub(super) is_window: bool,
}

#[derive(Debug, Clone)]
struct Start {
    number: u64,
    at: Timestamp,
    before: f64,
    cost: f64,
}

#[derive(Debug, Clone, Copy)]
struct Opened {
    at: Timestamp,
    /// The charges accepted until then.
    accepted: f64,
}

/// A time, and the charges sent until then.
#[derive(Debug, Clone, Copy)]
struct Began {
    at: Timestamp,
    before: f64,
}

/// An event, as far as all dimensions share it.
#[derive(Debug)]
pub(super) struct Event<'a> {
    pub(super) sent: &'a SentRequest,
    pub(super) now: Timestamp,
    /// Seconds of the pause, at most 2.
    pub(super) pause: f64,
    /// Seconds from sending a request to its refusal.
    pub(super) delay: f64,
    pub(super) is_slow_start: bool,
    /// Requests sent so far.
    pub(super) requests: f64,
    /// `true` if no other dimension is measured by the event.
    pub(super) is_only: bool,
}

impl Column {
    pub(super) fn new(dimension: Dimension, configured: Option<ConfiguredRate>) -> Self {
        Self {
            dimension,
            configured,
            sent: 0.0,
            refused: 0.0,
            all_refused: 0.0,
            opened: None,
            began: None,
            start: None,
            pace: None,
            refused_size: (1.0, 0),
            events: 0,
            last_event: Timestamp::UNIX_EPOCH,
            trial: None,
            lately: Lately::default(),
            levels: Levels::default(),
            is_window: false,
        }
    }

    /// Starts with a learned rate, which is tested like one that was just measured.
    pub(super) fn start_at(&mut self, pace: Pace, number: u64, now: Timestamp) {
        self.pace = Some(pace);
        self.refused = 0.0;
        self.start = Some(Start { number, at: now, before: self.sent, cost: 0.0 });
    }

    /// Counts a request that is sent now.
    pub(super) fn send(&mut self, cost: f64, number: u64, now: Timestamp) {
        self.opened.get_or_insert(Opened { at: now, accepted: 0.0 });
        self.began.get_or_insert(Began { at: now, before: 0.0 });
        self.sent += cost;
        self.lately.sent(self.sent - self.all_refused, now);
        if let Some(pace) = &mut self.pace {
            pace.take(cost, now);
        }
        self.compare_with_configured(number, now);
    }

    /// Returns the cost of a request that was never sent.
    pub(super) fn put_back(&mut self, cost: f64) {
        if let Some(pace) = &mut self.pace {
            pace.put_back(cost);
        }
    }

    /// Takes a refused request off the sums: it used nothing of the limit.
    pub(super) fn exclude(&mut self, cost: f64, number: u64) {
        self.all_refused += cost;
        if self.start.as_ref().is_some_and(|start| number > start.number) {
            self.refused += cost;
        }
    }

    /// Takes the refused request of an event that doesn't measure this dimension off the sums.
    pub(super) fn exclude_event(&mut self, cost: f64) {
        self.refused += cost;
        self.all_refused += cost;
    }

    /// Measures the rate after a closure that is so long that the provider counts in windows: from what it
    /// has accepted since it was open again the last time. Nothing is measured if that is only the request that ended the
    /// closure, before which `before` was sent.
    pub(super) fn open_again(
        &mut self,
        closure: &Closure,
        before: f64,
        number: u64,
        now: Timestamp,
    ) {
        let Some(opened) = self.opened.filter(|_| self.is_window(closure)) else { return };
        let accepted = self.sent - self.all_refused;
        let is_measured = before - self.all_refused > opened.accepted;
        self.opened = Some(Opened { at: closure.until, accepted });
        let got = accepted - opened.accepted;
        let interval = seconds_between(opened.at, closure.until) - closure.uncertain / 2.0;
        let interval = interval.max(LONG_CLOSURE / 2.0);
        let Some(mut pace) = self.pace.take_if(|_| is_measured) else { return };
        pace.set_rate(got / interval);
        pace.error = (closure.uncertain / interval).clamp(WINDOW_ERROR, 1.0);
        pace.cycle = interval / 2.0;
        pace.begin_cycle();
        self.start_at(pace, number, now);
        self.levels.take();
        self.is_window = true;
    }

    /// Returns whether a closure that followed an event of this dimension is longer than a bucket explains.
    fn is_window(&self, closure: &Closure) -> bool {
        let (Some(pace), Some(start)) = (&self.pace, &self.start) else { return false };
        let explained = BUCKET_COSTS * start.cost / pace.rate();
        let seconds = seconds_between(closure.since, closure.until);
        self.last_event >= closure.since && seconds >= explained.max(LONG_CLOSURE)
    }

    /// Measures the rate from the refusals of two events. Returns how often it must have fallen lately.
    pub(super) fn measure(&mut self, column: usize, cost: f64, event: &Event<'_>) -> usize {
        let mut falls = 0;
        let before = event.sent.before.get(column).copied().unwrap_or_default();
        let mean = self.sent / event.requests.max(1.0);
        let cost = cost.max(MIN_AMOUNT);
        match (&self.start, &mut self.pace) {
            (Some(start), Some(pace)) => {
                let span = seconds_between(start.at, event.sent.at).max(0.001);
                let got = (before - start.before - self.refused).max(0.0);
                // Without a refusal before, the bucket held more than nothing.
                let first = if start.cost > 0.0 { start.cost } else { f64::INFINITY };
                // A refused request that tests whether the limit is higher shows no fall.
                let busy = if event.sent.is_growing { 0.0 } else { pace.busy() };
                let busy = (busy - seconds_between(event.sent.at, event.now)).max(0.0);
                let stretch = Stretch { accepted: got, seconds: span, busy, costs: (first, cost) };
                falls = self.levels.add(stretch).saturating_sub(usize::from(self.is_window));
                let cost = cost.max(start.cost);
                let speed = pace.speed();
                let measured = got.max(cost / 2.0) / (span - pace.idle()).max(0.1 * span);
                pace.set_rate((measured * speed).sqrt());
                let steady =
                    (10.0 * event.pause).max(60.0 * mean / pace.rate()).clamp(5.0, LONGEST_CYCLE);
                let errors = [
                    cost / got.max(cost),
                    speed / pace.rate() - 1.0,
                    mean / (pace.rate() * steady),
                ];
                pace.error = errors.into_iter().fold(0.03, f64::max).min(1.0);
                let quick = steady * (QUICK_ERROR / pace.error).clamp(0.1, 1.0);
                pace.cycle =
                    quick.max(2.0 * event.pause).max(4.0 * mean / pace.rate()).clamp(0.5, 1e9);
                // The requests that are sent before the first refusal is known are refused, too.
                let delays = if pace.error < QUICK_ERROR { STEADY_DELAYS } else { QUICK_DELAYS };
                pace.cycle = pace.cycle.max((delays * event.delay).min(LONGEST_CYCLE));
            }
            _ => {
                let rate = self.first_rate(before, event);
                let mut pace = Pace::new(rate.max(cost / 4.0), event.now);
                pace.cycle = pace.cycle.max(QUICK_DELAYS * event.delay);
                self.pace = Some(pace);
            }
        }
        let floor = self.accepted_per_second(before, event.now) / 4.0;
        if let Some(pace) = &mut self.pace {
            pace.set_rate(pace.rate().max(floor));
            pace.begin_cycle();
            pace.saved = if event.is_only { SAVED_ALONE } else { SAVED_TOGETHER };
        }
        self.start = Some(Start { number: event.sent.number, at: event.sent.at, before, cost });
        self.refused = cost;
        self.all_refused += cost;
        self.events = self.events.saturating_add(1);
        self.last_event = event.now;
        falls
    }

    /// Returns half of the configured rate, or of what was sent per second in a slow start, of its first burst if that
    /// isn't used up: the first refusal says only that the limit is lower.
    fn first_rate(&self, before: f64, event: &Event<'_>) -> f64 {
        let configured = self.configured.as_ref().filter(|_| !event.is_slow_start);
        if let Some(configured) = configured {
            return configured.per_second / 2.0;
        }
        let began = self.began.unwrap_or(Began { at: event.now, before: 0.0 });
        let elapsed = seconds_between(began.at, event.sent.at).max(1.0);
        let mean = self.sent / event.requests.max(1.0);
        let burst = if event.requests < FIRST_BURST { FIRST_BURST * mean } else { 0.0 };
        ((before - began.before) / elapsed).max(burst) / 2.0
    }

    /// Forgets the learned rate. Returns what was accepted per second while it was learned.
    pub(super) fn restart(&mut self, now: Timestamp) -> f64 {
        self.pace = None;
        self.began = Some(Began { at: now, before: self.sent });
        self.levels.take()
    }

    /// Returns the amount that was accepted per second in the last minute of sending, of requests before one.
    pub(super) fn accepted_per_second(&self, before: f64, now: Timestamp) -> f64 {
        self.lately.per_second(before - self.all_refused, now)
    }

    /// Notes the size of a refused request.
    pub(super) fn note_size(&mut self, cost: f64, requests: f64) {
        if self.sent > 0.0 {
            let (mean, count) = &mut self.refused_size;
            *count = count.saturating_add(1);
            *mean += (cost * requests / self.sent - *mean) / f64::from((*count).min(10));
        }
    }

    /// Returns the mean size of refused requests, once there are some.
    pub(super) fn size(&self) -> Option<f64> {
        (self.refused_size.1 >= 3).then_some(self.refused_size.0)
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.last_event = self.last_event.saturating_sub(back);
        if let Some(start) = &mut self.start {
            start.at = start.at.saturating_sub(back);
        }
        if let Some(pace) = &mut self.pace {
            pace.rebase(back);
        }
        if let Some(opened) = &mut self.opened {
            opened.at = opened.at.saturating_sub(back);
        }
        for began in [&mut self.began, &mut self.trial].into_iter().flatten() {
            began.at = began.at.saturating_sub(back);
        }
        self.lately.rebase(back);
    }

    /// Drops a pace that has stood at the configured rate for 30 s, and replaces a starting point that has
    /// been used in full for 30 s by a pace, which can grow above it.
    fn compare_with_configured(&mut self, number: u64, now: Timestamp) {
        let Some(configured) = &self.configured else { return };
        if let Some(pace) = &mut self.pace {
            if pace.speed() < configured.per_second {
                pace.at_configured_since = None;
                return;
            }
            let since = *pace.at_configured_since.get_or_insert(now);
            let is_proven = configured.is_ceiling && seconds_between(since, now) >= TRIAL;
            // What the bucket holds is only sent at once if bursts as large have been tested.
            if is_proven && pace.test_burst(now) >= configured.burst {
                self.pace = None;
            }
            return;
        }
        if configured.is_ceiling {
            return;
        }
        let trial = *self.trial.get_or_insert(Began { at: now, before: self.sent });
        let elapsed = seconds_between(trial.at.max(self.last_event), now);
        if elapsed < TRIAL {
            return;
        }
        self.trial = None;
        let rate = (self.sent - trial.before) / elapsed;
        if rate >= USED_IN_FULL * configured.per_second {
            let pace = Pace::new(configured.per_second, now);
            self.start_at(pace, number, now);
        }
    }
}

/// Seconds after which a pace is back at the measured rate, at most.
const LONGEST_CYCLE: f64 = 60.0;

/// Seconds of the rate that a pace saves up, if it is the only one, and if others can bind instead.
const SAVED_ALONE: f64 = 0.05;
const SAVED_TOGETHER: f64 = 4.0;

/// Seconds for which a belief is tested.
pub(super) const TRIAL: f64 = 30.0;

/// The part of a configured rate that counts as full use, since margins leave a part unused.
const USED_IN_FULL: f64 = 0.95;

/// Seconds of a closure that a bucket doesn't explain, and the costs for which it would have had time.
const LONG_CLOSURE: f64 = 4.0;
const BUCKET_COSTS: f64 = 8.0;

/// The error of a rate that was measured by a window.
const WINDOW_ERROR: f64 = 0.05;

/// The cycle in delays of refusals, after a small and after a large error: what is sent during a delay is
/// refused, too, once per event.
const STEADY_DELAYS: f64 = 50.0;
const QUICK_DELAYS: f64 = 10.0;

/// The error from which cycles are shorter than steady ones.
const QUICK_ERROR: f64 = 0.2;
