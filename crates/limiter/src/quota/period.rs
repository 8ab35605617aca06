use serde::{Deserialize, Serialize};

use super::Window;

/// The unit of a [`Calendar`](super::Calendar).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first day of a month to the first day of the next.
    Month,
}

impl Period {
    /// Returns the name in configuration and in stores: `day`, `week` or `month`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// Returns the nominal length: 24 hours, 7 days, 30 days.
    pub const fn window(self) -> Window {
        match self {
            Self::Day => Window::DAY,
            Self::Week => Window::WEEK,
            Self::Month => Window::MONTH,
        }
    }
}
