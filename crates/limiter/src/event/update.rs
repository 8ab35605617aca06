use crate::timestamp::Timestamp;
use std::fmt;

/// A message to other programs: the sender has reduced the limits of a key.
///
/// The capacity of a key is the amount of its first limit per less than a day, or else of requests
/// in flight.
///
/// ```
/// use paceline_limiter::limiter::CapacityUpdate;
/// let now = paceline_limiter::limiter::Limiter::builder().build()?.now();
/// let update = CapacityUpdate::new("gpt-4o", "agent-7", 250, now).with_reason("429");
/// assert_eq!((update.new_capacity, update.reason.as_str()), (250, "429"));
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapacityUpdate {
    /// The key.
    pub resource: String,
    /// The program that reduced it.
    pub agent_id: String,
    /// The capacity that is left.
    pub new_capacity: u64,
    /// The reason.
    pub reason: String,
    /// The time of the reduction.
    pub timestamp: Timestamp,
}

impl CapacityUpdate {
    /// Creates an update of `resource` by `agent_id` at `timestamp`, without a reason.
    pub fn new(
        resource: impl Into<String>,
        agent_id: impl Into<String>,
        new_capacity: u64,
        timestamp: Timestamp,
    ) -> Self {
        let (resource, agent_id) = (resource.into(), agent_id.into());
        Self { resource, agent_id, new_capacity, reason: String::new(), timestamp }
    }

    /// Sets the reason.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

/// The reason why an update was ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ignored {
    /// The update was sent by this program.
    Own,
    /// The key has no quota with a capacity.
    Unknown,
    /// The capacity or the duration is 0.
    Zero,
    /// The new capacity is not below the current one.
    NotLower,
    /// The cool-down ends no later than the current one.
    NotLonger,
    /// Answers to this program have measured the limits, or no provider answers requests of the key here.
    NotNeeded,
    /// The update is older than the last one applied, or its time differs from the clock by more than an
    /// interval of recovery.
    Stale,
    /// Reductions are off ([`Reduction::OFF`](crate::limiter::Reduction::OFF)).
    Off,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "the update was sent by this program",
            Self::Unknown => "the key of the update has no known capacity",
            Self::Zero => "the capacity or duration of the update is 0",
            Self::NotLower => "the update is not below the current capacity",
            Self::NotLonger => "the update is no longer than the current cool-down",
            Self::NotNeeded => "the limits are measured here, or don't apply here",
            Self::Stale => "the update is stale",
            Self::Off => "reductions are off",
        })
    }
}

impl std::error::Error for Ignored {}
