use std::time::Duration;

use super::text::Texts;
use crate::quota::Window;

/// How the window of a limit is known.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider) enum Per {
    /// The provider's pages or the header's name say it.
    Seconds(u64),
    /// The header `renewalperiod` says it, in seconds; else it is a minute.
    Renewal,
    /// The name does not say, but the limit is a bucket of the whole amount that refills all the
    /// time: it is full again after used / limit x window. A day, where that would be too long for a
    /// minute.
    MinuteOrDay,
    /// The shortest of these that the reset fits in; the first where there is no reset.
    Shortest(&'static [Window]),
}

impl Per {
    /// The window, where nothing need be worked out.
    pub(super) fn stated(self, texts: &Texts<'_>) -> Option<Window> {
        match self {
            Self::Seconds(seconds) => of_seconds(seconds),
            Self::Renewal => {
                let seconds = texts.renewal.number().and_then(|n| u64::try_from(n).ok());
                Some(seconds.and_then(of_seconds).unwrap_or(Window::MINUTE))
            }
            Self::MinuteOrDay | Self::Shortest(_) => None,
        }
    }

    /// The window that the numbers imply.
    pub(super) fn implied(self, level: Level, reset: Option<Duration>) -> Window {
        match (self, reset) {
            (Self::Shortest(windows), reset) => {
                let fits = |window: &&Window| reset.is_none_or(|r| r <= window.as_duration());
                windows.iter().find(fits).or(windows.last()).copied().unwrap_or(Window::MINUTE)
            }
            (_, Some(reset)) if level.full_after(Window::MINUTE, ROUNDING) < reset => Window::DAY,
            _ => Window::MINUTE,
        }
    }
}

/// How full a bucket is said to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    pub(super) limit: Option<u64>,
    pub(super) remaining: Option<u64>,
}

impl Level {
    /// The longest that a bucket takes to be full again that refills its whole amount in a window:
    /// the window itself where limit or remaining are unknown. What remains was rounded down.
    pub(super) fn full_after(self, window: Window, rounding: Duration) -> Duration {
        let part = || {
            let (limit, remaining) = (self.limit?, self.remaining?);
            let used = u128::from(limit.saturating_sub(remaining).max(1));
            let nanos = used * u128::from(window.as_nanos()) / u128::from(limit.max(1));
            u64::try_from(nanos).ok().map(Duration::from_nanos)
        };
        part().unwrap_or(window.as_duration()) + rounding
    }
}

fn of_seconds(seconds: u64) -> Option<Window> {
    Window::new(Duration::from_secs(seconds)).ok()
}

/// Resets are written to the millisecond, and what remains to the whole request.
const ROUNDING: Duration = Duration::from_millis(100);
