//! What every way of metering can tell. One meter is the state of one limit of one model.

use std::fmt::Debug;

use super::fixed_window::FixedWindow;
use super::settings::LimitAlgorithm;
use super::sliding_log::SlidingLog;
use super::token_bucket::TokenBucket;

/// The state of one limit. Times are nanoseconds and never go back (the provider sees to it).
pub(super) trait Meter: Debug + Send {
    /// Nanoseconds until `n` fits if nobody else comes; 0 where it fits now, `None` where it
    /// never will.
    fn wait(&mut self, now: u64, n: u64) -> Option<u64>;

    /// Takes `n` now. What does not fit is owed.
    fn take(&mut self, now: u64, n: u64);

    /// What is left, rounded down.
    fn remaining(&mut self, now: u64) -> u64;

    /// Nanoseconds until nothing is used any more.
    fn time_until_full(&mut self, now: u64) -> u64;
}

/// A fresh meter of `amount` per `window` (ns) that never holds more than `capacity` at once.
///
/// Only a token bucket can hold less than the amount.
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
