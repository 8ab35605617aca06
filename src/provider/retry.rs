use std::time::{Duration, SystemTime};

use http::HeaderMap;
use memchr::memmem;

use super::duration;

/// The longest delay that is believed: one day. A longer one is cut to it.
pub const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// See [`Profile::retry_delay`](super::Profile::retry_delay).
pub(super) fn delay(headers: &HeaderMap, body: &[u8], now_unix_nanos: u64) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    text("retry-after-ms")
        .and_then(duration::millis)
        .or_else(|| text("retry-after").and_then(duration::seconds))
        .or_else(|| text("retry-after").and_then(|date| until(date, now_unix_nanos)))
        .or_else(|| in_text(body))
        .map(|delay| delay.min(LONGEST_DELAY))
}

/// The time until an HTTP date in any of its three forms (RFC 9110, 5.6.7).
fn until(date: &str, now_unix_nanos: u64) -> Option<Duration> {
    let at = httpdate::parse_http_date(date.trim()).ok()?;
    let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Some(at.saturating_sub(Duration::from_nanos(now_unix_nanos)))
}

/// OpenAI's "Please try again in 6m0s.", wherever it stands in the body.
fn in_text(body: &[u8]) -> Option<Duration> {
    let body = &body[..body.len().min(LONGEST_ERROR)];
    memmem::find_iter(body, PHRASE).find_map(|at| {
        let rest = &body[at + PHRASE.len()..];
        let rest = &rest[..rest.len().min(LONGEST_TEXT)];
        duration::leading(&String::from_utf8_lossy(rest)).map(|(delay, _)| delay)
    })
}

const PHRASE: &[u8] = b"try again in ";

/// No error body is longer; what is, is not searched to its end.
const LONGEST_ERROR: usize = 64 * 1024;

/// Room for the longest duration that Go writes.
const LONGEST_TEXT: usize = 40;
