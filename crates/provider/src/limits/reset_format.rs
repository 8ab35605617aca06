use std::time::Duration;

use http::HeaderMap;
use paceline_limiter::Timestamp;
use paceline_limiter::quota::Window;

use super::limit_window::Level;
use crate::{date, duration};

/// The format in which headers state when a limit is full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetFormat {
    /// A Go duration (`6m0s`), seconds (`2`, `59.5`), a time in RFC 3339, or a time in seconds or
    /// milliseconds since the Unix epoch. The delay to a time is measured from the response's `date`;
    /// without one it is unknown.
    Any,
    /// A whole number of seconds or of milliseconds: seconds, unless that is longer than a token
    /// bucket of this level needs to fill. Azure documents seconds and was recorded with milliseconds
    /// (limit 120, remaining 119, reset 500).
    SecondsOrMillis,
}

/// The context in which a reset is read.
pub(super) struct Context<'h> {
    pub(super) level: Level,
    pub(super) window: Option<Window>,
    /// All headers of the response, for its `date`.
    pub(super) headers: &'h HeaderMap,
}

impl ResetFormat {
    /// Returns the delay until the reset.
    pub(super) fn read(self, text: &str, context: &Context<'_>) -> Option<Duration> {
        match self {
            Self::Any => any(text, context),
            Self::SecondsOrMillis => seconds_or_millis(text, context),
        }
    }
}

fn any(text: &str, context: &Context<'_>) -> Option<Duration> {
    let until = |at: Timestamp| {
        let answered = date::of_response(context.headers)?;
        Some(at - answered)
    };
    duration::go(text)
        .or_else(|| until(date::rfc3339(text)?))
        .or_else(|| until(date::epoch(text)?))
        .or_else(|| duration::seconds(text).filter(|_| !text.starts_with('-')))
        .filter(|reset| *reset <= MAX_RESET)
}

fn seconds_or_millis(text: &str, context: &Context<'_>) -> Option<Duration> {
    let number: u64 = text.parse().ok()?;
    let longest = context.level.full_after(context.window.unwrap_or(Window::MINUTE), SECOND);
    let [seconds, millis] = [Duration::from_secs(number), Duration::from_millis(number)];
    [seconds, millis].into_iter().find(|reset| *reset <= longest)
}

/// Seconds are rounded up.
const SECOND: Duration = Duration::from_secs(1);

/// The longest window.
const MAX_RESET: Duration = Duration::from_secs(366 * 86_400);
