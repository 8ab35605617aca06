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
    /// The name does not say, but the limit is a bucket that refills all the time: its reset is
    /// used / limit x window. A day where the numbers are exactly those of a day's bucket and not
    /// those of a minute's; else a minute.
    BucketOfMinuteOrDay,
    /// The provider's pages name these two windows, and the reset is the end of one: a day where it
    /// is further away than a minute's end can be; else a minute.
    EndOfMinuteOrDay,
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
            Self::BucketOfMinuteOrDay | Self::EndOfMinuteOrDay => None,
        }
    }

    /// The window that the numbers state.
    pub(super) fn computed(self, level: Level, reset: Option<Duration>) -> Window {
        let is_day = reset.is_some_and(|reset| match self {
            Self::BucketOfMinuteOrDay => {
                !level.fills_in(Window::MINUTE, reset) && level.fills_in(Window::DAY, reset)
            }
            Self::EndOfMinuteOrDay => reset > Window::MINUTE.as_duration(),
            Self::Seconds(_) | Self::Renewal => false,
        });
        if is_day { Window::DAY } else { Window::MINUTE }
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
        let used = self.used().map(|used| used.max(1));
        let part = used.and_then(|used| self.refill(used, window));
        part.unwrap_or(window.as_duration()) + rounding
    }

    /// Whether a bucket of this window that is as full as this is full again after `reset`: exactly,
    /// but for what remains, which was rounded down.
    fn fills_in(self, window: Window, reset: Duration) -> bool {
        let bounds = || {
            let used = self.used()?;
            let shortest = self.refill(used.saturating_sub(1), window)?;
            Some((shortest, self.refill(used, window)?))
        };
        bounds().is_some_and(|(shortest, longest)| {
            shortest <= reset + ROUNDING && reset <= longest + ROUNDING
        })
    }

    fn used(self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.remaining?))
    }

    /// The time in which so much comes back.
    fn refill(self, amount: u64, window: Window) -> Option<Duration> {
        let nanos = u128::from(amount) * u128::from(window.as_nanos());
        let nanos = nanos.checked_div(u128::from(self.limit?))?;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }
}

fn of_seconds(seconds: u64) -> Option<Window> {
    Window::new(Duration::from_secs(seconds)).ok()
}

/// Resets are written to the millisecond, or rounded to a few.
const ROUNDING: Duration = Duration::from_millis(10);
