//! The interface of the metering algorithms. One meter holds the state of one limit of one model.

use std::fmt::Debug;

use super::clock_window::ClockWindow;
use super::fixed_window::FixedWindow;
use super::limit_terms::LimitTerms;
use super::settings::LimitAlgorithm;
use super::sliding_log::SlidingLog;
use super::token_bucket::TokenBucket;

/// The state of one limit. Times are nanoseconds, and never decrease (the provider ensures that).
pub(super) trait Meter: Debug + Send {
    /// Returns the nanoseconds until `n` fits without further requests: 0 if it fits now, `None` if
    /// it never does.
    fn wait(&mut self, now: u64, n: u64) -> Option<u64>;

    /// Charges `n` now. An amount above the remaining one becomes debt.
    fn take(&mut self, now: u64, n: u64);

    /// Returns the remaining amount, rounded down.
    fn remaining(&mut self, now: u64) -> u64;

    /// Returns the nanoseconds until the limit is unused.
    fn time_until_full(&mut self, now: u64) -> u64;

    /// Changes the limit from now on. What is used stays used, and only a token bucket has a
    /// capacity.
    fn set_amount(&mut self, now: u64, amount: u64, capacity: u64);
}

/// Creates an unused meter.
pub(super) fn meter(algorithm: LimitAlgorithm, terms: LimitTerms) -> Box<dyn Meter> {
    let LimitTerms { amount, window, capacity, .. } = terms;
    match algorithm {
        LimitAlgorithm::TokenBucket => Box::new(TokenBucket::new(amount, window, capacity)),
        LimitAlgorithm::SlidingWindow => Box::new(SlidingLog::new(amount, window)),
        LimitAlgorithm::FixedWindow => Box::new(FixedWindow::new(amount, window)),
        LimitAlgorithm::ClockWindow => Box::new(ClockWindow::new(amount, window)),
    }
}
