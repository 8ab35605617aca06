use std::time::Duration;

use super::units::{seconds_between, seconds_later};
use crate::timestamp::Timestamp;

/// Requests that are sent quickly after a refusal below the measured rate, to find out whether a limit is its reason.
///
/// A limit that refuses a request has nothing left, so that it accepts no more than what its rate adds. Chance accepts
/// most of them. They are sent one after the other, so that a limit costs two refusals.
#[derive(Debug, Default)]
pub(super) struct Trials {
    current: Option<Trial>,
    /// The trials that have passed since one failed or chance was shown, and those that failed since one passed.
    passed: usize,
    failed: u32,
    /// The refusals without a trial that are left after one failed.
    skipped: u32,
}

#[derive(Debug)]
struct Trial {
    /// The end of the pause, and the time of the next request.
    begins: Timestamp,
    next: Timestamp,
    /// Seconds between requests, in which a refusal arrives.
    gap: f64,
    /// The requests that are left to send, those accepted and refused, and the accepted ones that no limit explains.
    left: u32,
    accepted: u32,
    refused: u32,
    needed: u32,
    seeming: Seeming,
}

/// A refusal that seems to be that of a limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeming {
    pub(super) refused_at: Timestamp,
    /// Requests per second that the limit seems to allow.
    pub(super) rate: f64,
    /// Mean seconds until a refusal arrives.
    pub(super) latency: f64,
    /// Requests that were in flight with it, if those may be limited.
    pub(super) beside: u32,
    /// How often the limit has fallen without another explanation.
    pub(super) falls: usize,
    pub(super) is_named: bool,
}

/// What the refusal of a request shows that belongs to a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nothing yet.
    Open,
    /// There is a limit.
    Limit,
}

impl Trials {
    /// Begins a trial at the end of the pause after a refusal, unless it takes too many requests.
    pub(super) fn begin(&mut self, seeming: Seeming, pause_ends: Timestamp) {
        self.current = None;
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let gap = (GAP * seeming.latency).min(0.5 / seeming.rate);
        let pause = seconds_between(seeming.refused_at, pause_ends) + LATE;
        let explains = |requests: u32| {
            let allowed = seeming.rate * (pause + gap * f64::from(requests + 1));
            f64::from(requests) < 1.0 + (allowed * SURPLUS).max(allowed + LEAST)
        };
        let needed = (seeming.beside.max(3)..=MOST).find(|requests| !explains(*requests));
        self.current = needed.map(|needed| Trial {
            begins: pause_ends,
            next: pause_ends,
            gap,
            left: needed + CHANCE,
            accepted: 0,
            refused: 0,
            needed,
            seeming,
        });
    }

    /// Returns the time of the next request of a trial, if one can be sent at `at`.
    pub(super) fn ready_at(&self, at: Timestamp) -> Option<Timestamp> {
        self.current.as_ref().filter(|trial| trial.is_due(at)).map(|trial| trial.next.max(at))
    }

    /// Counts a request that is sent now.
    pub(super) fn sent(&mut self, now: Timestamp) {
        if let Some(trial) = self.current.as_mut().filter(|trial| trial.is_due(now)) {
            trial.left -= 1;
            trial.next = seconds_later(now, trial.gap);
        }
    }

    /// Counts a request that was accepted. Returns the refusal of a trial that has passed with it, and the number of
    /// those that have.
    pub(super) fn accepted(&mut self, sent_at: Timestamp) -> Option<(Seeming, usize)> {
        let trial = self.current.as_mut().filter(|trial| trial.has(sent_at))?;
        trial.accepted += 1;
        let trial = self.current.take_if(|trial| trial.accepted >= trial.needed)?;
        self.passed += 1;
        (self.failed, self.skipped) = (0, 0);
        Some((trial.seeming, self.passed))
    }

    /// Counts a request that was refused. `None` if it belongs to no trial.
    pub(super) fn refused(&mut self, sent_at: Timestamp) -> Option<Refused> {
        let trial = self.current.as_mut().filter(|trial| trial.has(sent_at))?;
        trial.refused += 1;
        if trial.refused <= CHANCE {
            return Some(Refused::Open);
        }
        self.current = None;
        self.passed = 0;
        self.failed = (self.failed + 1).min(MOST_FAILED);
        self.skipped = 1 << self.failed;
        Some(Refused::Limit)
    }

    /// Ends the current trial: chance is known.
    pub(super) fn end(&mut self) {
        (self.current, self.passed) = (None, 0);
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        if let Some(trial) = &mut self.current {
            trial.begins = trial.begins.saturating_sub(back);
            trial.next = trial.next.saturating_sub(back);
        }
    }
}

impl Trial {
    fn ends(&self) -> Timestamp {
        seconds_later(self.next, LATE)
    }

    fn is_due(&self, at: Timestamp) -> bool {
        self.left > 0 && self.begins <= at && at <= self.ends()
    }

    fn has(&self, sent_at: Timestamp) -> bool {
        self.begins <= sent_at && sent_at <= self.ends()
    }
}

/// Latencies of a refusal between two requests, so that one has arrived in most cases.
const GAP: f64 = 1.5;

/// Seconds by which a request of a trial may be late.
const LATE: f64 = 0.05;

/// The accepted requests that show a higher limit: this factor of what the measured rate has added, and at least this
/// many more, since rates are measured with errors and other programs may pause.
const SURPLUS: f64 = 2.5;
const LEAST: f64 = 2.0;

/// Refusals of a trial that may be chance.
const CHANCE: u32 = 1;

/// Requests of a trial at most.
const MOST: u32 = 32;

/// Failed trials that double the refusals until the next one.
const MOST_FAILED: u32 = 8;
