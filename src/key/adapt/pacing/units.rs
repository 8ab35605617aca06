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

/// Smaller than any cost.
pub(super) const MIN_AMOUNT: f64 = 1e-9;
