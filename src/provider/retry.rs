use std::time::Duration;

use http::HeaderMap;
use memchr::memmem;

use super::{date, duration, member};
use crate::timestamp::Timestamp;

/// The longest delay that is believed: one day. A longer one is cut to it.
pub const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// See [`Profile::retry_delay`](super::Profile::retry_delay).
pub(super) fn delay(headers: &HeaderMap, body: &[u8], now: Timestamp) -> Option<Duration> {
    let body = &body[..body.len().min(member::LONGEST)];
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    // A time is as far away as it is from the time at which the provider says it answered.
    let now = date::of_response(headers).unwrap_or(now);
    let until = |at: Timestamp| at - now;
    let spent = || text("x-ratelimit-remaining") == Some("0");
    text("retry-after-ms")
        .and_then(duration::millis)
        .or_else(|| text("retry-after").and_then(duration::seconds))
        .or_else(|| text("retry-after").and_then(date::http).map(until))
        .or_else(|| text("x-ratelimit-reset").filter(|_| spent()).and_then(date::epoch).map(until))
        .or_else(|| in_members(body, until))
        .or_else(|| in_text(body))
        .map(|delay| delay.min(LONGEST_DELAY))
}

/// Gemini's `RetryInfo.retryDelay` ("34.5s"); the header that OpenRouter puts into the body; the
/// seconds that Hugging Face takes to load a model.
fn in_members(body: &[u8], until: impl Fn(Timestamp) -> Duration) -> Option<Duration> {
    member::values(body, "retryDelay")
        .find_map(duration::go)
        .or_else(|| member::values(body, "X-RateLimit-Reset").find_map(date::epoch).map(until))
        .or_else(|| member::values(body, "estimated_time").find_map(duration::seconds))
}

/// "Please try again in 6m0s." (OpenAI, Groq), "Please retry after 6 seconds." (Azure), wherever it
/// stands in the body.
fn in_text(body: &[u8]) -> Option<Duration> {
    PHRASES.iter().find_map(|phrase| after(body, phrase.as_bytes()))
}

fn after(body: &[u8], phrase: &[u8]) -> Option<Duration> {
    memmem::find_iter(body, phrase).find_map(|at| {
        let rest = &body[at + phrase.len()..];
        let rest = &rest[..rest.len().min(LONGEST_TEXT)];
        duration::leading(&String::from_utf8_lossy(rest)).map(|(delay, _)| delay)
    })
}

const PHRASES: &[&str] =
    &["try again in ", "try again after ", "retry in ", "retry after ", "Retry after "];

/// Room for the longest duration that Go writes.
const LONGEST_TEXT: usize = 40;
