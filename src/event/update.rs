use crate::timestamp::Timestamp;
use std::fmt;

/// A message to other programs: this one has reduced a key.
///
/// The capacity of a key is the amount of its first limit per less than a day, or else of requests
/// in flight.
///
/// ```
/// use tollgate::limiter::CapacityUpdate;
/// let now = tollgate::limiter::Limiter::builder().build()?.now();
/// let update = CapacityUpdate::new("gpt-4o", "agent-7", 250, now).with_reason("429");
/// assert_eq!((update.new_capacity, update.reason.as_str()), (250, "429"));
/// # Ok::<(), tollgate::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapacityUpdate {
    /// The key.
    pub resource: String,
    /// The program that has reduced it.
    pub agent_id: String,
    /// The capacity that is left.
    pub new_capacity: u64,
    /// Why.
    pub reason: String,
    /// When that was.
    pub timestamp: Timestamp,
}

impl CapacityUpdate {
    /// An update of `resource` by `agent_id`, sent at `timestamp`,
    /// that gives no reason.
    pub fn new(
        resource: impl Into<String>,
        agent_id: impl Into<String>,
        new_capacity: u64,
        timestamp: Timestamp,
    ) -> Self {
        let (resource, agent_id) = (resource.into(), agent_id.into());
        Self { resource, agent_id, new_capacity, reason: String::new(), timestamp }
    }

    /// The same, and why.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

/// Why an update was not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ignored {
    /// It is one's own.
    Own,
    /// No quota with a capacity is known for the key.
    Unknown,
    /// A capacity of 0 is none, and neither is a pause of no time.
    Zero,
    /// It is not below the current capacity.
    NotLower,
    /// It ends no later than the cool-down that there is.
    NotLonger,
    /// It is older than the last that was followed, or more than an interval of recovery old, or as
    /// far ahead of the clock.
    Stale,
    /// Nothing is reduced here ([`Reduction::OFF`](crate::limiter::Reduction::OFF)).
    Off,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "the update is one's own",
            Self::Unknown => "no capacity is known for the key of the update",
            Self::Zero => "the update names no capacity, or no time",
            Self::NotLower => "the update is not below the current capacity",
            Self::NotLonger => "the update is no longer than the current cool-down",
            Self::Stale => "the update is stale",
            Self::Off => "nothing is reduced here",
        })
    }
}

impl std::error::Error for Ignored {}
