use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::bus::Bus;
use super::member::Member;
use super::status::BusStatus;
#[cfg(doc)]
use crate::limiter::{Event, Feedback};
use crate::limiter::{Ignored, Limiter};

/// Joins a limiter to a bus: it tells the others of its refusals, and follows theirs.
///
/// - When a key is reduced here, by a refusal ([`Feedback::rate_limited`]) or a call of
///   [`Feedback::reduce`], its new capacity is published on `ratelimit.capacity` as
///   `{resource, agent_id, new_capacity, reason, timestamp}`. Messages of other agents there are
///   passed to [`Feedback::apply`].
/// - When a key cools down here, the time that is left is published on `ratelimit.cooldown` as
///   `{resource, agent_id, retry_after_ms, reason, timestamp}`, so that the others pause before they
///   earn a refusal of their own ([`Feedback::apply_cool_down`]).
///
/// Messages are JSON; timestamps are of RFC 3339; fields that nobody knows are passed over. Keys are
/// sent as they are called: those of all agents should be called alike, and be no secrets. Who may
/// publish can slow everybody down: a bus should be as closed as the account's API key.
///
/// What was followed is told by [`Limiter::subscribe`] and [`Limiter::listen`], as
/// [`Event::Reduced`] and [`Event::CoolingDown`] with the other's name; what was not is counted by
/// reason. Each keeps its own buckets, and a bus that is down changes nothing for the limiter: its own
/// reduction holds, and it recovers by itself.
///
/// How far to reduce, and how to recover, is the limiter's [`Reduction`](crate::limiter::Reduction).
/// For those who come from a `DistributedConfig`:
///
/// | there | here |
/// |---|---|
/// | `Bus`, `AgentID` | required by [`join`](Self::join) |
/// | `ReduceFactor` 0.5 | [`Reduction::factor`](crate::limiter::Reduction::factor) 0.5 |
/// | `RecoveryInterval` 30 s | [`Reduction::interval`](crate::limiter::Reduction::interval) 30 s |
/// | `RecoveryFactor` 1.1 | [`Reduction::recovery_factor`](crate::limiter::Reduction::recovery_factor) 1.1, and at least one unit a step |
/// | `MaxRecovery` true | always so: never beyond the original |
/// | `OnCapacityChange` | `subscribe` or `listen` |
///
/// It goes with the limiter and ends with it, whether somebody keeps this handle or not. An example is
/// at [`LocalBus`](super::LocalBus).
#[derive(Debug, Clone)]
pub struct Agent(Arc<Member>);

/// What an [`Agent`] did since it joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentStatus {
    /// What its bus did, for all who use it.
    pub bus: BusStatus,
    /// Messages that it published.
    pub announced: u64,
    /// Messages of others that it followed.
    pub applied: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// Messages that it did not follow, its own included, by reason.
    pub ignored: BTreeMap<Ignored, u64>,
}

/// An agent that has no name: others could not tell its messages from their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoAgentId;

impl Agent {
    /// Joins a limiter to a bus, under a name that no other of its agents has.
    ///
    /// # Errors
    /// If the name is empty or blank.
    pub fn join(
        limiter: &Limiter,
        bus: Arc<dyn Bus>,
        agent_id: impl Into<String>,
    ) -> Result<Self, NoAgentId> {
        let id = agent_id.into();
        if id.trim().is_empty() {
            return Err(NoAgentId);
        }
        Ok(Self(Member::new(limiter, bus, id)))
    }

    /// Its name among the agents.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// What it did so far.
    pub fn status(&self) -> AgentStatus {
        self.0.status()
    }
}

impl fmt::Display for NoAgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("agent id: must not be empty; give each agent on the bus a unique id")
    }
}

impl std::error::Error for NoAgentId {}
