//! Full and short runs of long tests: property tests, soaks, kill and fault matrices, traces, SDKs.

/// Returns the full length of a run if `PACELINE_FULL=1` is set, as `scripts/test.sh --full` does,
/// otherwise the short one.
pub fn full_or<T>(full: T, short: T) -> T {
    if std::env::var("PACELINE_FULL").is_ok_and(|value| value == "1") { full } else { short }
}
