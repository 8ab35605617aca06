//! The end time of an exchange.

use std::time::Duration;

use http::HeaderMap;
use paceline::Timestamp;

/// Returns the end time: `startedDateTime` (ISO 8601, or an HTTP date) plus `time` in milliseconds.
pub(super) fn ended(started: &str, millis: f64) -> Option<Timestamp> {
    let started = iso(started).or_else(|| http(started))?;
    // `time` is -1 if unknown.
    let took = Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default();
    Some(started + took)
}

/// Returns the `date` of a response.
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

/// Tools write the epoch, in any time zone, if the time is unknown.
fn is_known(time: &Timestamp) -> bool {
    *time > Timestamp::from_unix_secs(86_400)
}
