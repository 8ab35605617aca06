use http::{HeaderMap, header::DATE};
use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::duration;
use crate::timestamp::Timestamp;

/// Returns the time of the response by the provider's clock: its `date` header.
pub(super) fn of_response(headers: &HeaderMap) -> Option<Timestamp> {
    http(headers.get(DATE)?.to_str().ok()?)
}

/// Reads an HTTP date in any of its three forms (RFC 9110, 5.6.7), without checking the weekday. A
/// date before the Unix epoch counts as the epoch.
pub(super) fn http(text: &str) -> Option<Timestamp> {
    let (_, date) = text.trim().split_once([',', ' '])?;
    let at = FORMS.iter().find_map(|form| DateTime::strptime(form, date.trim_start()).ok())?;
    Some(after_epoch(at.duration_since(EPOCH)))
}

/// Reads `2025-09-13T11:13:20Z`. A time before the Unix epoch counts as the epoch.
pub(super) fn rfc3339(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    Some(after_epoch(at.as_duration()))
}

fn after_epoch(since: SignedDuration) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(since.as_nanos().max(0)).unwrap_or(u64::MAX))
}

/// Reads a number that can only be a time since the Unix epoch, in seconds or in milliseconds.
pub(super) fn epoch(text: &str) -> Option<Timestamp> {
    let number = duration::seconds(text)?;
    match number.as_secs() {
        SECONDS_2001..SECONDS_5138 => Timestamp::UNIX_EPOCH.checked_add(number),
        MILLIS_2001..MILLIS_5138 => Timestamp::UNIX_EPOCH.checked_add(number / 1_000),
        _ => None,
    }
}

pub(super) const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`,
/// after the weekday.
const FORMS: [&str; 3] = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"];

/// The bounds of plausible times, 2001-09-09 and the year 5138: seconds since the epoch have ten or
/// eleven digits between them, milliseconds thirteen or fourteen.
const SECONDS_2001: u64 = 1_000_000_000;
const SECONDS_5138: u64 = 100 * SECONDS_2001;
const MILLIS_2001: u64 = 1_000 * SECONDS_2001;
const MILLIS_5138: u64 = 1_000 * SECONDS_5138;
