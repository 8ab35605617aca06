//! The interface of the metering algorithms. One meter holds the state of one limit of one model.

use std::fmt::Debug;

use super::fixed_window::FixedWindow;
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
}

/// Creates a meter of `amount` per `window` nanoseconds that holds at most `capacity`.
///
/// Only a token bucket can hold less than its amount.
pub(super) fn meter(
    algorithm: LimitAlgorithm,
    amount: u64,
    window: u64,
    capacity: u64,
) -> Box<dyn Meter> {
    match algorithm {
        LimitAlgorithm::TokenBucket => Box::new(TokenBucket::new(amount, window, capacity)),
        LimitAlgorithm::SlidingWindow => Box::new(SlidingLog::new(amount, window)),
        LimitAlgorithm::FixedWindow => Box::new(FixedWindow::new(amount, window)),
    }
}
