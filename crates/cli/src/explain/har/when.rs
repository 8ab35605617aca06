//! When an exchange ended.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use jiff::Timestamp;

/// From a `startedDateTime` (ISO 8601, or a date as in HTTP) and a `time` in milliseconds, in
/// nanoseconds since the Unix epoch.
pub(super) fn ended(started: &str, millis: f64) -> Option<u64> {
    let started = iso(started).or_else(|| http(started))?;
    // -1 where it is not known.
    let took = Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default();
    Some(started.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(0)))
}

/// From the headers of a response.
pub(super) fn date(headers: &HeaderMap) -> Option<u64> {
    http(headers.get(http::header::DATE)?.to_str().ok()?)
}

fn iso(text: &str) -> Option<u64> {
    let at: Timestamp = text.trim().parse().ok()?;
    u64::try_from(at.as_nanosecond()).ok().filter(is_known)
}

fn http(text: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok().filter(is_known)
}

/// Tools that don't know the time write the epoch, in one time zone or another.
fn is_known(unix_nanos: &u64) -> bool {
    *unix_nanos > Duration::from_secs(86_400).as_nanos() as u64
}
