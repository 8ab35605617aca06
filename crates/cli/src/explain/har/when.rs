//! When an exchange ended.

use std::time::Duration;

use http::HeaderMap;
use tollgate::Timestamp;

/// From a `startedDateTime` (ISO 8601, or a date as in HTTP) and a `time` in milliseconds.
pub(super) fn ended(started: &str, millis: f64) -> Option<Timestamp> {
    let started = iso(started).or_else(|| http(started))?;
    // -1 where it is not known.
    let took = Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default();
    Some(started + took)
}

/// From the headers of a response.
pub(super) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    http(headers.get(http::header::DATE)?.to_str().ok()?)
}

fn iso(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    u64::try_from(at.as_nanosecond()).ok().map(Timestamp::from_nanos).filter(is_known)
}

fn http(text: &str) -> Option<Timestamp> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    Some(Timestamp::from(at)).filter(is_known)
}

/// Tools that don't know the time write the epoch, in one time zone or another.
fn is_known(time: &Timestamp) -> bool {
    *time > Timestamp::from_unix_secs(86_400)
}
