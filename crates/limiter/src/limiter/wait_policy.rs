use std::collections::HashMap;
use std::time::Duration;

use crate::key::queue::Priority;
use crate::plan::Pattern;
use crate::quota::Key;

/// The order in which waiting requests get their turns.
///
/// Without a policy, the requests of a key are served in order of arrival. A policy adds priorities, and
/// fair shares between flows: of the requests that wait for a key, those with the highest
/// [`Priority`] go first. Of these the flow goes next that has had the least service for its weight. Within a
/// flow requests go in order of arrival.
///
/// Service is the time for which a request occupies the limits: the longest of cost / rate over its
/// dimensions. Turns are per key. With the shared limits of `paceline`, the processes that share a limit have one
/// order: each sends the first request of its queue with its priority, its flow and its weight. Another
/// [`Backend`](super::Backend) decides between processes itself.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::limiter::{Priority, WaitPolicy};
/// use paceline_limiter::{Limiter, Quota};
/// let policy = WaitPolicy::new()
///     .priority("tenant:nightly-*", Priority::BATCH)
///     .fair_by("tenant")
///     .weight("tenant:gold", 2);
/// let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500)).wait_policy(policy).build()?;
/// # drop(limiter);
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a policy does nothing until a limiter has it"]
pub struct WaitPolicy {
    priorities: Vec<(String, Priority)>,
    fair_by: Option<String>,
    weights: HashMap<String, u32>,
    max_starvation: Duration,
}

/// A policy, prepared for its use.
#[derive(Debug)]
pub(super) struct Prepared {
    priorities: Vec<(Pattern, Priority)>,
    /// The kind of keys that are flows, with the colon.
    fair_by: Option<String>,
    weights: HashMap<String, u32>,
    pub(super) max_starvation: Duration,
}

impl WaitPolicy {
    /// Creates a policy without priorities and flows: requests go in order of arrival.
    pub fn new() -> Self {
        Self {
            priorities: Vec::new(),
            fair_by: None,
            weights: HashMap::new(),
            max_starvation: Duration::from_secs(30),
        }
    }

    /// Sets the priority of the requests that have a key that this name covers: a key, a glob, or `regex:` and
    /// a regular expression. Of several names, the first one counts. The priority of the request itself,
    /// if it has one, takes precedence.
    pub fn priority(mut self, keys: impl Into<String>, priority: Priority) -> Self {
        self.priorities.push((keys.into(), priority));
        self
    }

    /// Shares the limits fairly between the keys of one kind: with `tenant`, the requests with the key
    /// `tenant:a` are one flow, and those with `tenant:b` another. The flow of the request itself, if it has
    /// one, takes precedence.
    pub fn fair_by(mut self, kind: impl Into<String>) -> Self {
        self.fair_by = Some(kind.into());
        self
    }

    /// Sets the weight of a flow, at least 1: a flow with weight 2 gets twice the service of one with
    /// weight 1, while both have requests waiting. Default: the weight of the flow's quota
    /// ([`Quota::with_weight`](crate::Quota::with_weight)), or 1.
    pub fn weight(mut self, flow: impl Into<String>, weight: u32) -> Self {
        self.weights.insert(flow.into(), weight.max(1));
        self
    }

    /// Sets the time after which a lower priority gets one turn although requests with a higher one
    /// wait. Default: 30 seconds.
    pub fn max_starvation(mut self, time: Duration) -> Self {
        self.max_starvation = time;
        self
    }

    pub(super) fn prepare(&self) -> Prepared {
        let Self { priorities, fair_by, weights, max_starvation } = self;
        let pattern = |(name, priority): &(String, _)| (Pattern::of(name), *priority);
        Prepared {
            priorities: priorities.iter().map(pattern).collect(),
            fair_by: fair_by.as_ref().map(|kind| format!("{kind}:")),
            weights: weights.clone(),
            max_starvation: *max_starvation,
        }
    }
}

impl Default for WaitPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl Prepared {
    /// Returns the priority of a request with these keys.
    pub(super) fn priority_of(&self, keys: &[&Key]) -> Priority {
        let covers = |(pattern, _): &&(Pattern, _)| keys.iter().any(|key| pattern.covers(key));
        self.priorities.iter().find(covers).map_or(Priority::NORMAL, |(_, priority)| *priority)
    }

    /// Returns the key that is the flow of a request with these keys.
    pub(super) fn flow_of<'a>(&self, keys: &[&'a Key]) -> Option<&'a Key> {
        let kind = self.fair_by.as_deref()?;
        keys.iter().copied().find(|key| key.starts_with(kind))
    }

    /// Returns the weight of a flow, if the policy sets one.
    pub(super) fn weight_of(&self, flow: &str) -> Option<u32> {
        self.weights.get(flow).copied()
    }
}
