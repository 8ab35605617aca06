//! The amounts of one limit.

use super::clock_window::ClockWindow;
use super::exceeded_limit::LimitKind;
use super::fixed_window::FixedWindow;
use super::meter::Meter;
use super::settings::{LimitAlgorithm, Settings};
use super::sliding_log::SlidingLog;
use super::token_bucket::TokenBucket;

/// The amount of one limit as stated, and as enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LimitTerms {
    /// The amount per minute, ten minutes or day, which headers and refusals state.
    pub(super) stated: u64,
    /// The enforced amount per `window`.
    pub(super) amount: u64,
    /// Nanoseconds.
    pub(super) window: u64,
    /// The amount of an unused limit: all of a window, or the burst of a token bucket.
    pub(super) capacity: u64,
}

impl LimitTerms {
    /// Returns the terms of a limit of `stated` units. Limits per day have no shorter windows or
    /// bursts, and spending is always limited in windows.
    pub(super) fn new(settings: &Settings, kind: LimitKind, stated: u64) -> Self {
        let whole = kind.window_ns();
        let unchanged = Self { stated, amount: stated, window: whole, capacity: stated };
        let part = |length: u64| {
            let part = u128::from(stated) * u128::from(length) / u128::from(whole);
            u64::try_from(part).unwrap_or(u64::MAX).max(1)
        };
        let length = |duration: Option<_>| duration.map(nanoseconds);
        match (kind, settings.algorithm) {
            (LimitKind::RequestsPerDay, _) => unchanged,
            (kind, LimitAlgorithm::TokenBucket) if kind != LimitKind::Spend => {
                let burst = length(settings.burst).unwrap_or(whole).min(whole);
                Self { capacity: part(burst), ..unchanged }
            }
            _ => {
                let window = length(settings.window).unwrap_or(whole).max(1);
                let amount = part(window);
                Self { stated, amount, window, capacity: amount }
            }
        }
    }

    /// Creates an unused meter of a limit with these terms.
    pub(super) fn meter(self, algorithm: LimitAlgorithm) -> Box<dyn Meter> {
        let Self { amount, window, capacity, .. } = self;
        match algorithm {
            LimitAlgorithm::TokenBucket => Box::new(TokenBucket::new(amount, window, capacity)),
            LimitAlgorithm::SlidingWindow => Box::new(SlidingLog::new(amount, window)),
            LimitAlgorithm::FixedWindow => Box::new(FixedWindow::new(amount, window)),
            LimitAlgorithm::ClockWindow => Box::new(ClockWindow::new(amount, window)),
        }
    }
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
