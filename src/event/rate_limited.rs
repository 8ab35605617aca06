use std::time::Duration;

use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// A refusal by the provider, as far as it says what was short and when to come back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimited {
    /// How long the provider asks to wait. Where it doesn't say: a second, and twice as long each
    /// time that a key is refused again before it has recovered by a step, up to 64 seconds; a minute
    /// until a limit has reset.
    pub retry_after: Option<Duration>,
    /// When the request was sent: that of its permit
    /// ([`granted_at`](crate::limiter::Permit::granted_at)). Ten seconds ago where it isn't known.
    pub sent_at: Option<Timestamp>,
    /// The dimension that was short, where the provider names it.
    pub dimension: Option<Dimension>,
    /// True if an amount per day, or of another long window, is used up
    /// ([`Class::UntilReset`](crate::provider::Class::UntilReset)).
    pub until_reset: bool,
}

impl RateLimited {
    /// A refusal that asks to wait so long.
    pub fn new(retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::default() }
    }

    /// The refused request was sent then.
    #[must_use]
    pub fn sent_at(self, time: Timestamp) -> Self {
        Self { sent_at: Some(time), ..self }
    }

    /// This is what was short.
    #[must_use]
    pub fn dimension(self, dimension: Dimension) -> Self {
        Self { dimension: Some(dimension), ..self }
    }

    /// It comes of an amount per day, or of another long window, that is used up.
    #[must_use]
    pub fn until_reset(self) -> Self {
        Self { until_reset: true, ..self }
    }

    /// Returns the delay for a key that was refused `before` times before.
    pub(crate) fn delay(&self, before: u32) -> Duration {
        let unsaid = match self.until_reset {
            true => UNTIL_RESET,
            false => DEFAULT_DELAY * (1 << before.min(LONGEST_GROWTH)),
        };
        self.retry_after.unwrap_or(unsaid)
    }
}

const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// The delay is doubled at most this often.
const LONGEST_GROWTH: u32 = 6;

/// The delay of a refusal that names no time, where a long window is used up.
const UNTIL_RESET: Duration = Duration::from_secs(60);
