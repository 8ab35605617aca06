use http::{HeaderMap, header::DATE};
use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use paceline_limiter::Timestamp;

use crate::duration;

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

/// Reads the date and time at the start of a text: `2026-09-04 19:01:25 +0800`, `2026-12-01 at 00:00 UTC`,
/// `Sep 5th, 2026 9:12 AM`. The time is UTC if the text states no offset from it.
pub(super) fn leading(text: &str) -> Option<Timestamp> {
    let text = plain(text);
    let (time, rest) = WRITTEN.iter().find_map(|form| {
        let (time, length) = BrokenDownTime::parse_prefix(form, &text).ok()?;
        // A day and an hour aren't a year.
        let date = time.to_date().ok().filter(|date| date.year() > 2_000)?;
        let clock = time.to_time().unwrap_or_default();
        Some((date.to_datetime(clock), &text[length..]))
    })?;
    let fraction = |c: char| c == '.' || c.is_ascii_digit();
    let zone = rest.trim_start_matches(fraction).trim_start_matches([' ', '(']);
    let offset = offset(zone).unwrap_or(SignedDuration::ZERO);
    Some(after_epoch(time.duration_since(EPOCH).saturating_sub(offset)))
}

/// Writes a date in one of few forms: words in lower case with one space between them, months with three letters,
/// without commas, ordinals, `at`, and the `T` before a time.
fn plain(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST_WRITTEN).map_or(text.len(), |(end, _)| end);
    let text = text[..end].to_lowercase().replace([',', '/'], " ");
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end));
        let is_number = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        let is_month = |month: &&&str| word.starts_with(**month);
        match (ordinal.filter(is_number), MONTHS.iter().find(is_month), word) {
            (_, _, "at" | "on") => continue,
            _ if is_weekday(word) => continue,
            (Some(number), ..) => plain.push_str(number),
            (_, Some(month), _) => plain.push_str(month),
            _ => match word.split_once('t') {
                Some((date, time)) if time.starts_with(|c: char| c.is_ascii_digit()) => {
                    plain.extend([date, " ", time]);
                }
                _ => plain.push_str(word),
            },
        }
        plain.push(' ');
    }
    plain
}

fn is_weekday(word: &str) -> bool {
    let is_rest =
        |rest: &str| matches!(rest, "" | "." | "s" | "day" | "sday" | "nesday" | "rsday" | "urday");
    WEEKDAYS.iter().any(|day| word.strip_prefix(day).is_some_and(is_rest))
}

/// Reads an offset from UTC: `z`, `utc`, `+08:00`, `-0700`, `utc+8`.
fn offset(text: &str) -> Option<SignedDuration> {
    let text = text.trim_start_matches("utc").trim_start_matches("gmt").trim_start();
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let is_end = |c: char| !(c.is_ascii_digit() || c == ':');
    let number = text[1..].split(is_end).next()?;
    let (hours, minutes) = match number.split_once(':') {
        Some(parts) => parts,
        None if number.len() > 2 => number.split_at(number.len().min(4) - 2),
        None => (number, ""),
    };
    let hours: i64 = hours.parse().ok().filter(|hours| *hours < 24)?;
    let minutes: i64 = minutes.get(..2).and_then(|minutes| minutes.parse().ok()).unwrap_or(0);
    Some(SignedDuration::from_secs(sign * (hours * 3_600 + minutes * 60)))
}

pub(super) const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`,
/// after the weekday.
const FORMS: [&str; 3] = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"];

/// The forms of dates in messages, after [`plain`].
const WRITTEN: [&str; 13] = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y %m %d %H:%M:%S",
    "%Y %m %d %H:%M",
    "%b %d %Y %I:%M:%S %p",
    "%b %d %Y %I:%M %p",
    "%b %d %Y %H:%M:%S",
    "%b %d %Y %H:%M",
    "%b %d %Y",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%d %b %Y",
];

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The characters of a message that a date is read from.
const LONGEST_WRITTEN: usize = 60;

/// The bounds of plausible times, 2001-09-09 and the year 5138: seconds since the epoch have ten or
/// eleven digits between them, milliseconds thirteen or fourteen.
const SECONDS_2001: u64 = 1_000_000_000;
const SECONDS_5138: u64 = 100 * SECONDS_2001;
const MILLIS_2001: u64 = 1_000 * SECONDS_2001;
const MILLIS_5138: u64 = 1_000 * SECONDS_5138;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_dates_are_read_with_their_offset() {
        for (text, expected) in [
            ("2026-09-04 19:01:25", "2026-09-04T19:01:25Z"),
            ("2026-09-04T19:01:25.123Z.", "2026-09-04T19:01:25Z"),
            ("2026-09-03 16:21:00 +0800 CST. Request", "2026-09-03T08:21:00Z"),
            ("2026-09-03T16:21:00-07:00", "2026-09-03T23:21:00Z"),
            ("2026-12-01 at 00:00 UTC.", "2026-12-01T00:00:00Z"),
            ("2026-12-01", "2026-12-01T00:00:00Z"),
            ("2026/12/01 10:00", "2026-12-01T10:00:00Z"),
            ("Sep 5th, 2026 9:12 AM.", "2026-09-05T09:12:00Z"),
            ("September 5, 2026 at 9:12 pm", "2026-09-05T21:12:00Z"),
            ("5 Sep 2026 10:00:00 GMT", "2026-09-05T10:00:00Z"),
            ("Tue, 01 Sep 2026 00:10:00 GMT", "2026-09-01T00:10:00Z"),
            ("Thu Sep 03 2026 00:00:00 GMT+0000", "2026-09-03T00:00:00Z"),
            ("2026-09-03 16:21:00 (UTC+8)", "2026-09-03T08:21:00Z"),
            ("2026-09-03 16:21:00 UTC+5:30", "2026-09-03T10:51:00Z"),
            ("2026-09-03 16:21:00 UTC +08:00", "2026-09-03T08:21:00Z"),
        ] {
            assert_eq!(leading(text), rfc3339(expected), "{text}");
        }
        for text in ["", "30 seconds", "2026", "September", "2026-13-01", "at noon", "12-01"] {
            assert_eq!(leading(text), None, "{text}");
        }
    }
}
