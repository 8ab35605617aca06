use paceline_limiter::quota::Dimension;
use paceline_limiter::seam;

use super::limit_window::LimitWindow;

/// A limit, as response headers name it: see [`LimitHeaders`](super::LimitHeaders).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitHeader {
    pub(super) name: &'static str,
    dimension: &'static str,
    pub(super) window: LimitWindow,
    pub(super) granularity: u64,
}

impl LimitHeader {
    /// Returns a limit by its name in headers, in lower case, and the name of its dimension:
    /// `requests`, `tokens`, `input_tokens`, `output_tokens`, `concurrency` or a custom one. The name
    /// in headers may be empty.
    pub const fn new(name: &'static str, dimension: &'static str, window: LimitWindow) -> Self {
        Self { name, dimension, window, granularity: 1 }
    }

    /// Sets the number to whose multiples the provider rounds the remainder.
    #[must_use]
    pub const fn rounded_to(self, granularity: u64) -> Self {
        Self { granularity, ..self }
    }

    /// Limits whose name states their window: Mistral, Cerebras, SambaNova.
    pub(super) const WITH_WINDOW_IN_NAME: &'static [Self] = &[
        Self::new("req-second", "requests", SECOND),
        Self::new("req-10-second", "requests", LimitWindow::Seconds(10)),
        Self::new("req-minute", "requests", LimitWindow::MINUTE),
        Self::new("req-day", "requests", LimitWindow::DAY),
        Self::new("req-month", "requests", MONTH),
        Self::new("requests-second", "requests", SECOND),
        Self::new("requests-minute", "requests", LimitWindow::MINUTE),
        Self::new("requests-hour", "requests", HOUR),
        Self::new("requests-day", "requests", LimitWindow::DAY),
        Self::new("tokens-second", "tokens", SECOND),
        Self::new("tokens-minute", "tokens", LimitWindow::MINUTE),
        Self::new("tokens-hour", "tokens", HOUR),
        Self::new("tokens-day", "tokens", LimitWindow::DAY),
        Self::new("tokens-month", "tokens", MONTH),
    ];

    pub(super) fn dimension(&self) -> Dimension {
        let mut known = seam::DIMENSIONS.into_iter();
        let known = known.find(|dimension| dimension.as_str() == self.dimension);
        known.unwrap_or_else(|| Dimension::custom(self.dimension))
    }
}

const SECOND: LimitWindow = LimitWindow::Seconds(1);
const HOUR: LimitWindow = LimitWindow::Seconds(3_600);
const MONTH: LimitWindow = LimitWindow::Seconds(30 * 86_400);
