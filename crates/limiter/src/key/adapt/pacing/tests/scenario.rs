//! A provider and its clients, and the outcome of a run.

use std::time::Duration;

use super::super::ConfiguredRate;
use super::provider::ProviderLimit;
use crate::quota::Dimension;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RetryAfter {
    WholeSeconds,
    Milliseconds,
    Absent,
    Zero,
    AlwaysSixty,
}

/// A provider, and clients that send to it.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) limits: Vec<(Dimension, ProviderLimit)>,
    /// Rates per second that the clients were configured with, with a burst of a minute.
    pub(super) configured: Vec<(Dimension, f64)>,
    pub(super) is_ceiling: bool,
    pub(super) seconds: f64,
    /// The shortest and the longest latency of an answer, and the mean one of a refusal, in seconds.
    pub(super) latency: (f64, f64),
    pub(super) refusal: f64,
    pub(super) retry_after: RetryAfter,
    /// `true` if refusals name the dimension.
    pub(super) is_named: bool,
    pub(super) concurrency: Option<u32>,
    pub(super) processes: usize,
    /// Seconds between the starts of processes.
    pub(super) stagger: f64,
    /// Times and numbers of requests; endless work if empty.
    pub(super) arrivals: Vec<(f64, u32)>,
    /// The time in which the provider answers 529.
    pub(super) storm: (f64, f64),
    /// Seconds after which the outcome's figures of the steady state begin.
    pub(super) warm_up: f64,
    /// The error of estimated tokens, and the factor by which they are wrong.
    pub(super) error: f64,
    pub(super) bias: f64,
    pub(super) seed: u64,
    /// The amount that the clients can use at most.
    pub(super) demand: f64,
    /// Requests that a client keeps in flight at most.
    pub(super) workers: u32,
    /// Seconds between the times at which a busy client reads answers; 0 if it reads them at once.
    pub(super) reads_every: f64,
    pub(super) chance: Chance,
    /// `true` if every other request is refused, as by one of two accounts that is exhausted.
    pub(super) is_half_exhausted: bool,
}

/// Refusals that don't depend on the rate: a share of all requests, all the time or in every other period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chance {
    pub(super) share: f64,
    /// Seconds of a period; infinite for a constant share.
    pub(super) seconds: f64,
    /// `Retry-After` of such refusals, in seconds.
    pub(super) retry_after: Option<u64>,
    /// `true` if such refusals name a limit.
    pub(super) is_named: bool,
}

impl Chance {
    pub(super) const NONE: Self =
        Self { share: 0.0, seconds: f64::INFINITY, retry_after: None, is_named: false };

    /// Returns the share at a time.
    pub(super) fn at(&self, time: f64) -> f64 {
        let is_on = self.seconds.is_infinite() || ((time / self.seconds) as u64).is_multiple_of(2);
        if is_on { self.share } else { 0.0 }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    /// The part of the limit that was used: the largest of all limits.
    pub(super) used: f64,
    pub(super) refusals: u64,
    pub(super) accepted: u64,
    pub(super) events: u64,
    /// The share of each process in the accepted requests.
    pub(super) shares: Vec<f64>,
    /// The same after the warm-up: what was used of the mean rate, and what was refused.
    pub(super) steady: Steady,
    pub(super) overloads: u64,
    /// Requests without an answer at the end.
    pub(super) unanswered: u64,
    /// Seconds until the last answer.
    pub(super) end: f64,
}

/// The figures of the steady state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Steady {
    pub(super) used: f64,
    pub(super) refusals: u64,
    pub(super) events: u64,
}

impl Scenario {
    pub(super) fn new() -> Self {
        Self {
            limits: Vec::new(),
            configured: Vec::new(),
            is_ceiling: true,
            seconds: 300.0,
            latency: (0.05, 0.4),
            refusal: 0.02,
            retry_after: RetryAfter::WholeSeconds,
            is_named: true,
            concurrency: None,
            processes: 1,
            stagger: 10.0,
            arrivals: Vec::new(),
            storm: (0.0, 0.0),
            warm_up: 0.0,
            error: 0.0,
            bias: 1.0,
            seed: 1,
            demand: f64::INFINITY,
            workers: 512,
            reads_every: 0.0,
            chance: Chance::NONE,
            is_half_exhausted: false,
        }
    }

    /// Returns the time at which a client reads an answer.
    pub(super) fn read_at(&self, at: f64) -> f64 {
        if self.reads_every > 0.0 { (at / self.reads_every).ceil() * self.reads_every } else { at }
    }

    pub(super) fn rates(&self) -> impl Iterator<Item = ConfiguredRate> + '_ {
        self.configured.iter().map(|(dimension, per_second)| ConfiguredRate {
            dimension: dimension.clone(),
            per_second: *per_second,
            burst: per_second * 60.0,
            is_ceiling: self.is_ceiling,
        })
    }

    pub(super) fn retry_after(&self, wait: f64) -> Option<Duration> {
        match self.retry_after {
            RetryAfter::WholeSeconds => Some(Duration::from_secs_f64(wait.ceil().max(1.0))),
            RetryAfter::Milliseconds => Some(Duration::from_secs_f64(wait)),
            RetryAfter::Absent => None,
            RetryAfter::Zero => Some(Duration::ZERO),
            RetryAfter::AlwaysSixty => Some(Duration::from_secs(60)),
        }
    }
}
