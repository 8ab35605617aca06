use super::code::Code;
use super::error::{Need, Refused};
use super::learned::LearnedLimit;
use super::stats::KeyStats;
use crate::engine::Wait;
use crate::quota::{Dimension, Key};
use crate::timestamp::Timestamp;

/// The answer of [`Limiter::decide`](crate::Limiter::decide).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// The kind of the answer.
    pub code: Code,
    /// The key of the request, or of several keys the one that refuses.
    pub key: Key,
    /// The dimension that is short, if a limit refuses.
    pub dimension: Option<Dimension>,
    /// The time at which the request fits; `None` if it fits now.
    pub wait: Option<Wait>,
    /// The amount needed of that dimension, and its limit.
    pub need: Option<Need>,
    /// The time of the decision.
    pub asked_at: Timestamp,
    /// The statistics of the key at that time.
    pub stats: KeyStats,
}

impl Decision {
    /// Creates the decision of a refusal, without statistics.
    pub(crate) fn refused_by(refused: Refused) -> Self {
        let Refused { key, code, dimension, wait, need, asked_at, .. } = refused;
        let stats = KeyStats::default();
        Self { code, key, dimension, wait: Some(wait), need, asked_at, stats }
    }

    /// Returns `true` if the request would be admitted.
    pub fn is_allowed(&self) -> bool {
        self.wait.is_none()
    }

    /// Returns the refusal, whose text states the reason and the wait; `None` if the request would be
    /// admitted.
    pub fn refused(&self) -> Option<Refused> {
        let Self { code, need, asked_at, .. } = *self;
        let (key, dimension) = (self.key.clone(), self.dimension.clone());
        let is_short = |limit: &&LearnedLimit| {
            code == Code::LearnedLimit && dimension.as_ref() == Some(&limit.dimension)
        };
        let learned = self.stats.learned.iter().find(is_short).cloned();
        self.wait.map(|wait| {
            let refused = Refused { key, code, dimension, wait, need, asked_at, details: None };
            refused.with_learned(learned)
        })
    }
}
