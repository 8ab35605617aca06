//! The delay that a refusal states.

use std::time::Duration;

use super::exceeded_limit::{ExceededLimit, LimitKind};

/// The way in which refusals state the delay after which a request may be sent again, in headers and
/// bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RetryAfter {
    /// The exact delay, in the form of the provider. Refusals of requests in flight state none, since
    /// a provider doesn't know when a response ends.
    #[default]
    Auto,
    /// No delay.
    None,
    /// The exact delay; the header is `retry-after-ms` alone.
    Milliseconds,
    /// These seconds, whatever the exact delay is.
    Seconds(u64),
}

impl RetryAfter {
    /// Returns the delay to state for a refusal; `None` also if the request never fits.
    pub(super) fn delay(self, refusal: &ExceededLimit) -> Option<Duration> {
        let exact = refusal.retry_after?;
        match self {
            Self::None => None,
            Self::Seconds(seconds) => Some(Duration::from_secs(seconds)),
            Self::Auto | Self::Milliseconds if refusal.kind == LimitKind::Concurrency => None,
            Self::Auto | Self::Milliseconds => Some(exact),
        }
    }
}
