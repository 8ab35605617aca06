use std::time::Duration;

use http::HeaderMap;
use memchr::memmem;

use super::error::ErrorRules;
use super::{date, duration, json_member};
use crate::timestamp::Timestamp;

/// The longest retry delay: one day. A longer one is cut to it.
pub const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// Implements [`Profile::retry_delay`](super::Profile::retry_delay).
pub(super) fn delay(
    rules: &ErrorRules,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Option<Duration> {
    let body = &body[..body.len().min(json_member::MAX_BODY)];
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    // The delay until a time is measured from the time at which the provider answered.
    let now = date::of_response(headers).unwrap_or(now);
    let until = |at: Timestamp| at - now;
    let spent = || text("x-ratelimit-remaining") == Some("0");
    text("retry-after-ms")
        .and_then(duration::millis)
        .or_else(|| text("retry-after").and_then(duration::seconds))
        .or_else(|| text("retry-after").and_then(date::http).map(until))
        .or_else(|| text("x-ratelimit-reset").filter(|_| spent()).and_then(date::epoch).map(until))
        .or_else(|| in_members(body, rules.delay_fields, until))
        .or_else(|| in_message(body))
        .map(|delay| delay.min(LONGEST_DELAY))
}

/// Returns the delay that a member of the body states: Gemini's `RetryInfo.retryDelay` ("34.5s"), the
/// header that OpenRouter copies into the body, the seconds that Hugging Face takes to load a model,
/// or one of `fields`.
fn in_members(
    body: &[u8],
    fields: &[&str],
    until: impl Fn(Timestamp) -> Duration,
) -> Option<Duration> {
    let delay = |text| duration::go(text).or_else(|| duration::seconds(text));
    json_member::values(body, "retryDelay")
        .find_map(duration::go)
        .or_else(|| json_member::values(body, "X-RateLimit-Reset").find_map(date::epoch).map(until))
        .or_else(|| json_member::values(body, "estimated_time").find_map(duration::seconds))
        .or_else(|| fields.iter().find_map(|f| json_member::values(body, f).find_map(delay)))
}

/// Returns the delay in a message, anywhere in the body: "Please try again in 6m0s." (OpenAI, Groq),
/// "Please retry after 6 seconds." (Azure).
fn in_message(body: &[u8]) -> Option<Duration> {
    PHRASES.iter().find_map(|phrase| after(body, phrase.as_bytes()))
}

fn after(body: &[u8], phrase: &[u8]) -> Option<Duration> {
    memmem::find_iter(body, phrase).find_map(|at| {
        let rest = &body[at + phrase.len()..];
        let rest = &rest[..rest.len().min(MAX_TEXT)];
        duration::leading(&String::from_utf8_lossy(rest)).map(|(delay, _)| delay)
    })
}

const PHRASES: &[&str] =
    &["try again in ", "try again after ", "retry in ", "retry after ", "Retry after "];

/// The number of bytes after a phrase that are read: more than the longest duration that Go writes.
const MAX_TEXT: usize = 40;
