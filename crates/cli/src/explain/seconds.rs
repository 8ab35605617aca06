use std::time::Duration;

/// Seconds to the microsecond: no header is more exact, and what is not a multiple of one comes from
/// reading a decimal fraction.
pub(super) fn seconds(duration: &Duration) -> f64 {
    (duration.as_nanos().saturating_add(500) / 1_000) as f64 / 1e6
}
