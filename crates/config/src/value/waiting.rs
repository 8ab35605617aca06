use std::time::Duration;

use paceline_limiter::limiter::{Priority, WaitPolicy};

/// The bounds and the order of queues.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingConfig {
    /// The maximum number of requests that wait for one key.
    pub max_waiting: usize,
    /// The longest wait of a request, or `None` if the configuration doesn't set it. [`Duration::MAX`] for
    /// `unlimited`; see [`max_wait_or`](Self::max_wait_or).
    pub max_wait: Option<Duration>,
    /// The priorities of requests by key, glob or `regex:` and a regular expression, in file order. The
    /// first match counts.
    pub bands: Vec<(String, Priority)>,
    /// The kind of keys that share limits fairly, such as `tenant`.
    pub fair_by: Option<String>,
    /// The weights of flows.
    pub weights: Vec<(String, u32)>,
    /// The time after which a lower priority gets one turn.
    pub max_starvation: Duration,
}

impl WaitingConfig {
    /// Returns the longest wait of a request, which is `default` if the configuration doesn't set it; `None` for no
    /// bound.
    pub fn max_wait_or(&self, default: Option<Duration>) -> Option<Duration> {
        self.max_wait.or(default).filter(|wait| *wait != Duration::MAX)
    }

    /// Returns the order in which waiting requests get their turns.
    pub fn policy(&self) -> WaitPolicy {
        let Self { bands, fair_by, weights, max_starvation, .. } = self;
        let mut policy = WaitPolicy::new().max_starvation(*max_starvation);
        for (keys, priority) in bands {
            policy = policy.priority(keys, *priority);
        }
        for (flow, weight) in weights {
            policy = policy.weight(flow, *weight);
        }
        match fair_by {
            Some(kind) => policy.fair_by(kind),
            None => policy,
        }
    }
}
