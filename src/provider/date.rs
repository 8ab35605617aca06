use std::time::SystemTime;

use http::{HeaderMap, header::DATE};

use super::duration;

/// When the provider answered, by its own clock: `date`, in nanoseconds since the Unix epoch.
pub(super) fn of_response(headers: &HeaderMap) -> Option<u64> {
    http(headers.get(DATE)?.to_str().ok()?)
}

/// An HTTP date in any of its three forms (RFC 9110, 5.6.7), in nanoseconds since the Unix epoch; a
/// time before it is 0.
pub(super) fn http(text: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// `2025-09-13T11:13:20Z`, in nanoseconds since the Unix epoch; a time before it is 0.
pub(super) fn rfc3339(text: &str) -> Option<u64> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    Some(u64::try_from(at.as_nanosecond().max(0)).unwrap_or(u64::MAX))
}

/// A number that can only be a time since the Unix epoch, in seconds or in milliseconds; answered in
/// nanoseconds.
pub(super) fn epoch(text: &str) -> Option<u64> {
    let number = duration::seconds(text)?;
    match number.as_secs() {
        SECONDS_2001..SECONDS_5138 => u64::try_from(number.as_nanos()).ok(),
        MILLIS_2001..MILLIS_5138 => u64::try_from(number.as_nanos() / 1_000).ok(),
        _ => None,
    }
}

/// 2001-09-09, from which on seconds have ten digits, up to where they have twelve; 5138 in
/// milliseconds has fifteen.
const SECONDS_2001: u64 = 1_000_000_000;
const SECONDS_5138: u64 = 100 * SECONDS_2001;
const MILLIS_2001: u64 = 1_000 * SECONDS_2001;
const MILLIS_5138: u64 = 1_000 * SECONDS_5138;
