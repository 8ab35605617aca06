use std::time::Duration;

use paceline_limiter::quota::Window;

use super::texts::Texts;

/// The window of a limit that headers state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitWindow {
    /// A window of this many seconds, by the provider's documentation or the header's name.
    Seconds(u64),
    /// The seconds in the header `renewalperiod`; without it a minute.
    RenewalPeriod,
    /// A minute or a day of a token bucket, whose reset is used / limit x window: a day if the numbers
    /// are exactly those of a day's bucket and not those of a minute's, else a minute.
    MinuteOrDayByRefill,
    /// A minute or a day whose end the reset states: a day if the reset is longer than a minute.
    MinuteOrDayByReset,
}

impl LimitWindow {
    pub(super) const MINUTE: Self = Self::Seconds(60);
    pub(super) const DAY: Self = Self::Seconds(86_400);

    /// Returns the window if it doesn't depend on limit and reset.
    pub(super) fn stated(self, texts: &Texts<'_>) -> Option<Window> {
        match self {
            Self::Seconds(seconds) => of_seconds(seconds),
            Self::RenewalPeriod => {
                let seconds = texts.renewal.number().and_then(|n| u64::try_from(n).ok());
                Some(seconds.and_then(of_seconds).unwrap_or(Window::MINUTE))
            }
            Self::MinuteOrDayByRefill | Self::MinuteOrDayByReset => None,
        }
    }

    /// Returns the window that limit, remainder and reset indicate.
    pub(super) fn computed(self, level: Level, reset: Option<Duration>) -> Window {
        let is_day = reset.is_some_and(|reset| match self {
            Self::MinuteOrDayByRefill => {
                !level.fills_in(Window::MINUTE, reset) && level.fills_in(Window::DAY, reset)
            }
            Self::MinuteOrDayByReset => reset > Window::MINUTE.as_duration(),
            Self::Seconds(_) | Self::RenewalPeriod => false,
        });
        if is_day { Window::DAY } else { Window::MINUTE }
    }
}

/// The level of a bucket, as headers state it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    pub(super) limit: Option<u64>,
    pub(super) remaining: Option<u64>,
}

impl Level {
    /// Returns the longest time that a bucket takes to fill if it refills its whole amount in a
    /// window: the window itself if limit or remainder are unknown. The remainder was rounded down.
    pub(super) fn full_after(self, window: Window, rounding: Duration) -> Duration {
        let used = self.used().map(|used| used.max(1));
        let part = used.and_then(|used| self.refill(used, window));
        part.unwrap_or(window.as_duration()) + rounding
    }

    /// Returns true if a bucket of this window and level is full after exactly `reset`, given that the
    /// remainder was rounded down.
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

    /// Returns the time in which this amount refills.
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
