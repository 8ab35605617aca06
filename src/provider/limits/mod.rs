//! Limits in response headers: one table of names for each provider, read by one function.

mod limit_header;
mod limit_headers;
mod limit_window;
mod reset_format;
mod tables;
mod texts;

use std::time::Duration;

use smallvec::SmallVec;

pub use limit_header::LimitHeader;
pub use limit_headers::LimitHeaders;
pub use limit_window::LimitWindow;
pub use reset_format::ResetFormat;

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

/// The limits that one response states; two are stored inline.
pub type LimitReadings = SmallVec<[LimitReading; 2]>;
