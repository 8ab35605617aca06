use crate::answer::learned::LearnedLimit;
use crate::timestamp::Timestamp;

/// A message to other programs: the sender has measured limits of a key by its provider's answers.
///
/// ```
/// use paceline_limiter::limiter::{LearnedLimit, LearnedUpdate, Limiter};
/// use paceline_limiter::quota::Dimension;
/// let now = Limiter::builder().build()?.now();
/// let limit = LearnedLimit::new(Dimension::Requests, 20.0, now, 3);
/// let update = LearnedUpdate::new("gpt-4o", "agent-7", vec![limit], now);
/// assert_eq!(update.resource, "gpt-4o");
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LearnedUpdate {
    /// The key.
    pub resource: String,
    /// The program that was refused.
    pub agent_id: String,
    /// The limits.
    pub limits: Vec<LearnedLimit>,
    /// The time of the refusal.
    pub timestamp: Timestamp,
}

impl LearnedUpdate {
    /// Creates a message of `agent_id` about `resource`.
    pub fn new(
        resource: impl Into<String>,
        agent_id: impl Into<String>,
        limits: Vec<LearnedLimit>,
        timestamp: Timestamp,
    ) -> Self {
        Self { resource: resource.into(), agent_id: agent_id.into(), limits, timestamp }
    }
}
