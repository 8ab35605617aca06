use std::time::Duration;

use smallvec::smallvec;

use super::send_log::Sums;
use super::units::{seconds_between, seconds_later};
use crate::timestamp::Timestamp;

/// Requests that are sent quickly after a refusal below the measured rate, to find out whether a limit is its reason.
///
/// A limit that refuses a request has nothing left, so that it accepts no more than what its rate adds. Chance accepts
/// most of them. They are sent one after the other, so that a limit costs two refusals, and one after a trial has failed.
#[derive(Debug, Default)]
pub(super) struct Trials {
    current: Option<Trial>,
    /// The trials that have passed since one failed or chance was shown, and those that failed since one passed.
    passed: usize,
    passed_at: Option<Timestamp>,
    failed: u32,
    /// The refusals without a trial that are left after one failed.
    skipped: u32,
}

#[derive(Debug)]
struct Trial {
    /// The end of the pause, and the time of the next request.
    begins: Timestamp,
    next: Timestamp,
    /// Seconds between requests.
    gap: f64,
    /// The requests that are left to send, those sent, accepted and refused, and the accepted ones that no limit explains.
    left: u32,
    sent: u32,
    accepted: u32,
    refused: u32,
    needed: u32,
    /// What was sent of each column, and of it by the largest request.
    amounts: Sums,
    largest: Sums,
    refusal: Refused,
}

/// A refusal that seems to be that of a limit.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) at: Timestamp,
    /// Requests per second that the limit seems to allow, and the learned rate of each column, 0 without one.
    pub(super) requests_per_second: f64,
    pub(super) rates: Sums,
    /// Mean seconds until a refusal arrives.
    pub(super) latency: f64,
    /// Requests that were in flight with it, if those may be limited.
    pub(super) beside: u32,
    pub(super) is_named: bool,
}

/// What the refusal of a request shows about a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// It belongs to none.
    NoTrial,
    /// Nothing yet.
    Nothing,
    /// There is a limit.
    Limit,
}

impl Trials {
    /// Begins a trial at the end of the pause after a refusal, unless it takes too many requests.
    pub(super) fn begin(&mut self, refusal: Refused, pause_ends: Timestamp) {
        self.current = None;
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if self.passed_at.is_some_and(|at| seconds_between(at, pause_ends) > REMEMBERED) {
            self.passed = 0;
        }
        let gap = (GAP * refusal.latency).min(LARGEST_GAP / refusal.requests_per_second);
        if refusal.latency > MOST_UNKNOWN * gap {
            return;
        }
        let pause = seconds_between(refusal.at, pause_ends) + LATE;
        let explains = |requests: u32| {
            let seconds = pause + gap * f64::from(requests + CHANCE);
            let allowed = refusal.requests_per_second * seconds;
            f64::from(requests) < 1.0 + (allowed * SURPLUS).max(allowed + LEAST)
        };
        let needed = (refusal.beside.max(3)..=MOST).find(|requests| !explains(*requests));
        self.current = needed.map(|needed| Trial {
            begins: pause_ends,
            next: pause_ends,
            gap,
            left: needed + CHANCE,
            sent: 0,
            accepted: 0,
            refused: 0,
            needed,
            amounts: smallvec![0.0; refusal.rates.len()],
            largest: smallvec![0.0; refusal.rates.len()],
            refusal,
        });
    }

    /// Returns the time of the next request of a trial, if one can be sent at `at`.
    pub(super) fn ready_at(&self, at: Timestamp) -> Option<Timestamp> {
        self.current.as_ref().filter(|trial| trial.is_due(at)).map(|trial| trial.next.max(at))
    }

    /// Counts a request that is sent now, by the sums before and after it.
    pub(super) fn sent(&mut self, before: &Sums, after: &Sums, now: Timestamp) {
        let Some(trial) = self.current.as_mut().filter(|trial| trial.is_due(now)) else { return };
        trial.left -= 1;
        trial.sent += 1;
        trial.next = seconds_later(now, trial.gap);
        let columns = trial.amounts.iter_mut().zip(&mut trial.largest);
        for ((amount, largest), (before, after)) in columns.zip(before.iter().zip(after)) {
            *amount += after - before;
            *largest = largest.max(after - before);
        }
    }

    /// Takes back a request that was never sent.
    pub(super) fn returned(&mut self, sent_at: Timestamp) {
        if let Some(trial) = self.current.as_mut().filter(|trial| trial.has(sent_at)) {
            trial.left += 1;
        }
    }

    /// Counts a request that was accepted. Returns whether a trial has passed with it, and if so whether its refusal was
    /// named and how many trials have passed in a row.
    pub(super) fn accepted(&mut self, sent_at: Timestamp) -> Option<(bool, usize)> {
        let trial = self.current.as_mut().filter(|trial| trial.has(sent_at))?;
        trial.accepted += 1;
        let trial = self.current.take_if(|trial| trial.accepted >= trial.needed)?;
        if !trial.exceeds_rates() {
            return None;
        }
        self.passed += 1;
        self.passed_at = Some(trial.begins);
        (self.failed, self.skipped) = (0, 0);
        Some((trial.refusal.is_named, self.passed))
    }

    /// Counts a request that was refused.
    pub(super) fn refused(&mut self, sent_at: Timestamp) -> Shown {
        let Some(trial) = self.current.as_mut().filter(|trial| trial.has(sent_at)) else {
            return Shown::NoTrial;
        };
        trial.refused += 1;
        if self.failed == 0 && trial.refused <= CHANCE {
            return Shown::Nothing;
        }
        self.fail();
        Shown::Limit
    }

    /// Ends the trial of a request that was refused for another reason than a rate.
    pub(super) fn set_aside(&mut self, sent_at: Timestamp) {
        if self.current.as_ref().is_some_and(|trial| trial.has(sent_at)) {
            self.fail();
        }
    }

    /// Ends the current trial: chance is known.
    pub(super) fn end(&mut self) {
        (self.current, self.passed) = (None, 0);
    }

    pub(super) fn rebase(&mut self, back: Duration) {
        self.passed_at = self.passed_at.map(|at| at.saturating_sub(back));
        if let Some(trial) = &mut self.current {
            for time in [&mut trial.begins, &mut trial.next, &mut trial.refusal.at] {
                *time = time.saturating_sub(back);
            }
        }
    }

    fn fail(&mut self) {
        self.end();
        self.failed = (self.failed + 1).min(MOST_FAILED);
        self.skipped = 1 + (1 << self.failed);
    }
}

impl Trial {
    fn ends(&self) -> Timestamp {
        seconds_later(self.next, LATE)
    }

    fn is_due(&self, at: Timestamp) -> bool {
        self.left > 0 && self.begins <= at && at <= self.ends()
    }

    /// Returns whether what was accepted exceeds what each learned rate has added. Requests that weren't accepted, or not
    /// yet, count as the largest one.
    fn exceeds_rates(&self) -> bool {
        let seconds = seconds_between(self.refusal.at, self.next);
        let others = f64::from(self.sent.saturating_sub(self.accepted));
        let columns = self.refusal.rates.iter().zip(&self.amounts).zip(&self.largest);
        columns.into_iter().all(|((rate, amount), largest)| {
            *rate == 0.0 || amount - others * largest > EXCEEDED * rate * seconds
        })
    }

    fn has(&self, sent_at: Timestamp) -> bool {
        self.begins <= sent_at && sent_at <= self.ends()
    }
}

/// Latencies of a refusal between two requests, so that one has arrived in most cases, and their most in requests of the
/// measured rate: a longer trial would need ever more of them.
const GAP: f64 = 1.5;
const LARGEST_GAP: f64 = 0.2;

/// Requests of a trial that are sent at most before a refusal is known: a limit refuses them all.
const MOST_UNKNOWN: f64 = 3.0;

/// Seconds by which a request of a trial may be late.
const LATE: f64 = 0.05;

/// The accepted requests that show a higher limit: this factor of what the measured rate has added, and at least this
/// many more, since rates are measured with errors and other programs may pause.
const SURPLUS: f64 = 2.5;
const LEAST: f64 = 2.0;

/// The same factor for amounts that differ between requests.
const EXCEEDED: f64 = 2.0;

/// Seconds for which a trial that has passed counts.
const REMEMBERED: f64 = 120.0;

/// Refusals of a trial that may be chance, unless one has failed before.
const CHANCE: u32 = 1;

/// Requests of a trial at most.
const MOST: u32 = 32;

/// Failed trials that each double the refusals until the next one.
const MOST_FAILED: u32 = 8;
