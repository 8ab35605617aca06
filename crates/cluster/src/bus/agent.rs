use std::fmt;
use std::sync::Arc;

use paceline_limiter::limiter::Limiter;
#[cfg(doc)]
use paceline_limiter::limiter::{Event, Feedback};

use super::bus::Bus;
use super::member::Member;
use super::status::AgentStatus;

/// Connects a limiter to a bus: publishes the limiter's refusals and applies those of other agents.
///
/// - When a key is reduced in this limiter, by a refusal ([`Feedback::rate_limited`]) or a call of
///   [`Feedback::reduce`], the agent publishes its new capacity on `ratelimit.capacity` as
///   `{resource, agent_id, new_capacity, reason, timestamp}`. It passes messages of other agents on
///   this subject to [`Feedback::apply`].
/// - When a key cools down in this limiter, the agent publishes the remaining time on
///   `ratelimit.cooldown` as `{resource, agent_id, retry_after_ms, reason, timestamp}`, so that
///   other agents pause before the provider refuses them too ([`Feedback::apply_cool_down`]).
/// - When a refusal has [measured](Event::LimitsLearned) limits of a key, the agent publishes them on
///   `ratelimit.learned` as `{resource, agent_id, limits: [{dimension, amount, events}], timestamp}`,
///   so that other agents start with them ([`Feedback::apply_learned`]), and half of the key's
///   capacity on `ratelimit.capacity`.
///
/// Messages are JSON, timestamps are RFC 3339, and unknown fields are ignored. Keys are sent
/// verbatim: all agents should use the same names, and keys should not be secrets. Any publisher
/// can slow down all agents, so restrict access to the bus as you would to the account's API key.
///
/// [`Limiter::subscribe`] and [`Limiter::listen`] report applied messages as [`Event::Reduced`] and
/// [`Event::CoolingDown`] with the id of the other agent; ignored messages are counted by reason.
/// Each limiter keeps its own buckets. While the bus is down, the limiter works as without it: its
/// own reductions apply, and it recovers on its own.
///
/// The limiter's [`Reduction`](paceline_limiter::limiter::Reduction) sets the size of a reduction and the pace
/// of recovery. The settings of go-ratelimit's `DistributedConfig` correspond as follows:
///
/// | `DistributedConfig` | paceline |
/// |---|---|
/// | `Bus`, `AgentID` | required by [`join`](Self::join) |
/// | `ReduceFactor` 0.5 | [`Reduction::factor`](paceline_limiter::limiter::Reduction::factor) 0.5 |
/// | `RecoveryInterval` 30 s | [`Reduction::interval`](paceline_limiter::limiter::Reduction::interval) 30 s |
/// | `RecoveryFactor` 1.1 | [`Reduction::recovery_factor`](paceline_limiter::limiter::Reduction::recovery_factor) 1.1, and at least one unit per step |
/// | `MaxRecovery` true | always: capacity never exceeds the original |
/// | `OnCapacityChange` | `subscribe` or `listen` |
///
/// The agent lives as long as its limiter; dropping this handle does not disconnect it. See
/// [`LocalBus`](super::LocalBus) for an example.
#[derive(Debug, Clone)]
pub struct Agent(Arc<Member>);

/// The error for an empty agent id: other agents could not tell its messages from their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoAgentId;

impl Agent {
    /// Connects a limiter to a bus under an id that no other agent on the bus uses.
    ///
    /// # Errors
    /// Returns [`NoAgentId`] if the id is empty or blank.
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

    /// Returns the id of this agent.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the counters of this agent.
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
