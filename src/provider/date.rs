use http::{HeaderMap, header::DATE};
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use super::duration;

/// When the provider answered, by its own clock: `date`, in nanoseconds since the Unix epoch.
pub(super) fn of_response(headers: &HeaderMap) -> Option<u64> {
    http(headers.get(DATE)?.to_str().ok()?)
}

/// An HTTP date in any of its three forms (RFC 9110, 5.6.7), whatever the weekday, in nanoseconds
/// since the Unix epoch; a time before it is 0.
pub(super) fn http(text: &str) -> Option<u64> {
    let (_, date) = text.trim().split_once([',', ' '])?;
    let at = FORMS.iter().find_map(|form| DateTime::strptime(form, date.trim_start()).ok())?;
    Some(nanos(at.duration_since(EPOCH)))
}

/// `2025-09-13T11:13:20Z`, in nanoseconds since the Unix epoch; a time before it is 0.
pub(super) fn rfc3339(text: &str) -> Option<u64> {
    let at: Timestamp = text.trim().parse().ok()?;
    Some(nanos(at.as_duration()))
}

fn nanos(since: SignedDuration) -> u64 {
    u64::try_from(since.as_nanos().max(0)).unwrap_or(u64::MAX)
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

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`,
/// behind the weekday.
const FORMS: [&str; 3] = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"];

/// 2001-09-09, from which on seconds have ten digits, up to where they have twelve; 5138 in
/// milliseconds has fifteen.
const SECONDS_2001: u64 = 1_000_000_000;
const SECONDS_5138: u64 = 100 * SECONDS_2001;
const MILLIS_2001: u64 = 1_000 * SECONDS_2001;
const MILLIS_5138: u64 = 1_000 * SECONDS_5138;
