use crate::timestamp::Timestamp;
use std::time::Duration;

/// A message to other programs: the provider of a key asks to wait.
///
/// It states a duration instead of a time, since the clocks of two machines differ.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::limiter::{CoolDown, Limiter};
/// let limiter = Limiter::builder().quota("gpt-4o", paceline_limiter::Quota::new().rpm(500)).build()?;
/// let pause = CoolDown::new("gpt-4o", "agent-7", Duration::from_secs(3), limiter.now());
/// assert!(limiter.feedback().apply_cool_down(&pause, "agent-1")? >= limiter.now());
/// assert!(limiter.try_acquire("gpt-4o", &paceline_limiter::Cost::new()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoolDown {
    /// The key.
    pub resource: String,
    /// The program that was refused.
    pub agent_id: String,
    /// The time for which no request should be sent.
    pub retry_after: Duration,
    /// The reason.
    pub reason: String,
    /// The time of the refusal.
    pub timestamp: Timestamp,
}

impl CoolDown {
    /// Creates a message of `agent_id` without a reason: `resource` pauses for `retry_after` from
    /// `timestamp` on.
    pub fn new(
        resource: impl Into<String>,
        agent_id: impl Into<String>,
        retry_after: Duration,
        timestamp: Timestamp,
    ) -> Self {
        let (resource, agent_id) = (resource.into(), agent_id.into());
        Self { resource, agent_id, retry_after, reason: String::new(), timestamp }
    }

    /// Sets the reason.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}
