use std::time::Duration;

use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// A refusal by the provider, with the details that its response states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimited {
    /// The delay that the provider asks for. If it states none, the delay is one second, doubled each time
    /// that the key is refused again before a step of recovery, up to 64 seconds; one minute if
    /// `until_reset` is set.
    pub retry_after: Option<Duration>,
    /// The time at which the request was sent
    /// ([`Permit::granted_at`](crate::limiter::Permit::granted_at)). Default: ten seconds ago.
    pub sent_at: Option<Timestamp>,
    /// The dimension that was short, if the provider names it.
    pub dimension: Option<Dimension>,
    /// `true` if a limit per day, or of another long window, is used up
    /// ([`Class::UntilReset`](crate::provider::Class::UntilReset)).
    pub until_reset: bool,
    /// `true` if the provider is overloaded (503, 529), which says nothing about its limits.
    pub is_overloaded: bool,
}

impl RateLimited {
    /// Creates a refusal with this delay.
    pub fn new(retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::default() }
    }

    /// Sets the time at which the refused request was sent.
    #[must_use]
    pub fn sent_at(self, time: Timestamp) -> Self {
        Self { sent_at: Some(time), ..self }
    }

    /// Sets the dimension that was short.
    #[must_use]
    pub fn dimension(self, dimension: Dimension) -> Self {
        Self { dimension: Some(dimension), ..self }
    }

    /// Marks a limit per day, or of another long window, as used up.
    #[must_use]
    pub fn until_reset(self) -> Self {
        Self { until_reset: true, ..self }
    }

    /// Marks the provider as overloaded.
    #[must_use]
    pub fn overloaded(self) -> Self {
        Self { is_overloaded: true, ..self }
    }

    /// Returns the delay for a key that was refused `before` times before.
    pub(crate) fn delay(&self, before: u32) -> Duration {
        let default = match self.until_reset {
            true => UNTIL_RESET,
            false => DEFAULT_DELAY * (1 << before.min(LONGEST_GROWTH)),
        };
        self.retry_after.unwrap_or(default)
    }
}

const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// The delay is doubled at most this often.
const LONGEST_GROWTH: u32 = 6;

/// The delay if a long window is used up and the provider states no delay.
const UNTIL_RESET: Duration = Duration::from_secs(60);
