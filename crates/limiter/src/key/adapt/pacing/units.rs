//! Seconds and amounts as numbers.

use crate::timestamp::Timestamp;

/// Returns the seconds from one time to another, 0 if the second is earlier.
pub(super) fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}

/// Returns the first nanosecond at least this many seconds later.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn seconds_later(from: Timestamp, seconds: f64) -> Timestamp {
    from.add_nanos((seconds * 1e9).ceil() as u64)
}

/// Moves the mean of recent values towards the latest one. The first one is the mean.
pub(super) fn add_to_mean(mean: &mut f64, value: f64) {
    let weight = if *mean == 0.0 { 1.0 } else { LATEST_WEIGHT };
    *mean += (value - *mean) * weight;
}

/// The weight of the latest value in a mean.
const LATEST_WEIGHT: f64 = 0.1;

/// Smaller than any cost.
pub(super) const MIN_AMOUNT: f64 = 1e-9;

/// The first burst of a slow start, and its first rate per second: small enough that most providers allow it.
pub(super) const FIRST_BURST: f64 = 10.0;
