use std::time::Duration;

use crate::quota::Dimension;
use crate::refusal::{Refusal, RefusalKind};
use crate::timestamp::Timestamp;

/// A refusal by the provider, with the time at which the refused request was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimited {
    /// What the provider's answer says. If it states no delay, a rate has one of one second, doubled each time that the
    /// key is refused again before a step of recovery, up to 64 seconds; a window one of a minute.
    pub refusal: Refusal,
    /// The time at which the request was sent
    /// ([`Permit::granted_at`](crate::limiter::Permit::granted_at)). Default: ten seconds ago.
    pub sent_at: Option<Timestamp>,
    /// The number of the refused request, the same for all its attempts; 0 if it has one attempt. `None` if a program
    /// reports that the key is refused.
    pub(crate) request: Option<u64>,
    /// `true` if an earlier attempt of the request has failed, other than by a refusal for a limit.
    pub(crate) has_failed: bool,
    /// The possible cause of a failure that isn't a refusal.
    pub(crate) fault: Option<Fault>,
}

/// The possible cause of a failure that isn't a refusal, and stops a key if no request is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server can't be reached: no request is the cause.
    Unreachable,
    /// The server or the request: another 5xx, a broken connection, a timeout.
    Unclear,
}

impl RateLimited {
    /// Creates a refusal for a rate, with this delay.
    pub fn new(retry_after: Option<Duration>) -> Self {
        Self::of(Refusal { delay: retry_after, ..Refusal::new(RefusalKind::Rate) })
    }

    /// Creates a report of this refusal.
    pub fn of(refusal: Refusal) -> Self {
        Self { refusal, sent_at: None, request: None, has_failed: false, fault: None }
    }

    /// Sets the time at which the refused request was sent.
    #[must_use]
    pub fn sent_at(self, time: Timestamp) -> Self {
        Self { sent_at: Some(time), ..self }
    }

    /// Creates a report of a failure that isn't a refusal.
    pub(crate) fn of_failure(fault: Fault, status: Option<u16>, text: impl Into<Box<str>>) -> Self {
        let capacity = Refusal::new(RefusalKind::Capacity);
        Self { fault: Some(fault), ..Self::of(Refusal { status, text: text.into(), ..capacity }) }
    }

    /// Sets the number of the refused request, whether an earlier attempt has failed, and the time at which it was sent.
    pub(crate) fn of_request(
        self,
        number: u64,
        has_failed: bool,
        sent_at: Option<Timestamp>,
    ) -> Self {
        Self { request: Some(number), has_failed, sent_at, ..self }
    }

    /// Sets the dimension that was short.
    #[must_use]
    pub fn dimension(mut self, dimension: Dimension) -> Self {
        self.refusal.dimension = Some(dimension);
        self
    }

    /// Marks a limit per day, or of another long window, as used up.
    #[must_use]
    pub fn until_reset(self) -> Self {
        self.of_kind(RefusalKind::Window)
    }

    /// Marks the provider as overloaded.
    #[must_use]
    pub fn overloaded(self) -> Self {
        self.of_kind(RefusalKind::Capacity)
    }

    fn of_kind(self, kind: RefusalKind) -> Self {
        let refusal = Refusal::new(kind);
        let Refusal { delay, dimension, .. } = self.refusal;
        Self { refusal: Refusal { delay, dimension, ..refusal }, ..self }
    }

    /// Returns the delay for a key that was refused `before` times before.
    pub(crate) fn delay(&self, before: u32) -> Duration {
        let default = match self.refusal.kind {
            RefusalKind::Window => UNTIL_RESET,
            _ => DEFAULT_DELAY * (1 << before.min(LONGEST_GROWTH)),
        };
        self.refusal.delay.unwrap_or(default)
    }
}

impl Default for RateLimited {
    fn default() -> Self {
        Self::new(None)
    }
}

const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// The delay is doubled at most this often.
const LONGEST_GROWTH: u32 = 6;

/// The delay if a long window is used up and the provider states no delay.
const UNTIL_RESET: Duration = Duration::from_secs(60);
