//! The interface of the metering algorithms. One meter holds the state of one limit of one model.

use std::fmt::Debug;

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
