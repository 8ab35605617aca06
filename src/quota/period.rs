use super::Window;

/// What a [`Calendar`](super::Calendar) counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first of a month to that of the next.
    Month,
}

impl Period {
    /// The nominal length: 24 hours, 7 days, 30 days.
    pub const fn window(self) -> Window {
        match self {
            Self::Day => Window::DAY,
            Self::Week => Window::WEEK,
            Self::Month => Window::MONTH,
        }
    }
}
