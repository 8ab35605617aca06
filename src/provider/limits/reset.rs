use std::time::Duration;

use http::HeaderMap;

use super::per::Level;
use crate::provider::{date, duration};
use crate::quota::Window;
use crate::timestamp::Timestamp;

/// What a reset is read against.
pub(in crate::provider) struct Context<'h> {
    pub(super) level: Level,
    pub(super) window: Option<Window>,
    /// All of the response's, for the time at which the provider answered.
    pub(super) headers: &'h HeaderMap,
}

/// Every form but Azure's: a Go duration (`6m0s`), seconds (`2`, `59.5`), a time in RFC 3339, or one
/// in seconds or milliseconds since the Unix epoch. A time is as far away as the response's own
/// `date` says; without one it is unknown.
pub(super) fn any(text: &str, context: &Context<'_>) -> Option<Duration> {
    let until = |at: Timestamp| {
        let answered = date::of_response(context.headers)?;
        Some(at - answered)
    };
    duration::go(text)
        .or_else(|| until(date::rfc3339(text)?))
        .or_else(|| until(date::epoch(text)?))
        .or_else(|| duration::seconds(text).filter(|_| !text.starts_with('-')))
        .filter(|reset| *reset <= LONGEST)
}

/// Azure's whole number: of seconds by its pages, of milliseconds in the recordings (limit 120,
/// remaining 119, reset 500). Whichever a bucket can take that refills all the time.
pub(super) fn azure(text: &str, context: &Context<'_>) -> Option<Duration> {
    let number: u64 = text.parse().ok()?;
    let longest = context.level.full_after(context.window.unwrap_or(Window::MINUTE), SECOND);
    let [seconds, millis] = [Duration::from_secs(number), Duration::from_millis(number)];
    [seconds, millis].into_iter().find(|reset| *reset <= longest)
}

/// Seconds are rounded up.
const SECOND: Duration = Duration::from_secs(1);

/// No window is longer.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
