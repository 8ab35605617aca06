use std::time::Duration;

/// Returns seconds rounded to microseconds: no header is more exact.
pub(super) fn seconds(duration: &Duration) -> f64 {
    (duration.as_nanos().saturating_add(500) / 1_000) as f64 / 1e6
}
