//! What a provider states about an account: its limits and how much of them is used.

use std::time::Duration;

use smallvec::SmallVec;

use crate::quota::{Dimension, Window};

/// One limit as the headers of a response state it. A field is `None` if its header is absent, -1,
/// unreadable, or present with different values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitReading {
    /// The limited dimension.
    pub dimension: Dimension,
    /// The window of the limit.
    pub window: Window,
    /// The amount allowed per window.
    pub limit: Option<u64>,
    /// The amount that is left by the provider's count, at most the limit.
    pub remaining: Option<u64>,
    /// The time until the limit is *full* again. Waiting for it wastes quota.
    pub reset: Option<Duration>,
    /// The number of which `remaining` is a multiple: 1 if it is exact, 1,000 for tokens at Anthropic,
    /// which rounds to the nearest. The true value may be off by as much to either side.
    pub granularity: u64,
}

impl LimitReading {
    /// Returns a limit of which nothing is known but its dimension and window.
    pub fn new(dimension: Dimension, window: Window) -> Self {
        let (limit, remaining, reset) = (None, None, None);
        Self { dimension, window, limit, remaining, reset, granularity: 1 }
    }
}

/// The limits that one response states; two are stored inline.
pub type LimitReadings = SmallVec<[LimitReading; 2]>;

/// The used part of one window of an account, as the headers of a response state it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UtilizationReading {
    /// The name of the window: `5h`, `7d`, `7d_oi`.
    pub window: String,
    /// The used part: 1 if the window is used up. A finite number, at least 0.
    pub used: f64,
    /// The time until the window starts again.
    pub reset: Option<Duration>,
}

impl UtilizationReading {
    /// Returns the used part of a window, without a reset.
    pub fn new(window: impl Into<String>, used: f64) -> Self {
        Self { window: window.into(), used, reset: None }
    }

    /// Sets the time until the window starts again.
    #[must_use]
    pub fn with_reset(self, reset: Option<Duration>) -> Self {
        Self { reset, ..self }
    }
}
