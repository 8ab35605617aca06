use std::sync::Arc;

use super::KeyState;
use crate::answer::stats::{KeyStats, LimitLevels, LimitStats};
use crate::backend::Backend;
use crate::engine::Level;
use crate::key::adapt::{Adapt, Step};

/// Statistics.
impl KeyState {
    /// Returns the limits and their current levels. Levels that a backend knows replace the local ones.
    pub(crate) fn limit_levels(
        &self,
        key: &str,
        backend: Option<&Arc<dyn Backend>>,
    ) -> LimitLevels {
        let now = self.now();
        let known = |rules: &[_]| backend.and_then(|backend| backend.levels(key, rules));
        match self.evidence().and_then(|adapt| adapt.recovered(&self.limits, now)) {
            Some(Step { rules, buckets, .. }) => {
                let rules: Arc<[_]> = rules.into_iter().collect();
                let known = known(&rules);
                LimitLevels::new(rules, &buckets, known.as_deref(), now)
            }
            None => {
                let rules = Arc::clone(&self.limits.plan.rules);
                let known = known(&rules);
                LimitLevels::new(rules, &self.limits.buckets, known.as_deref(), now)
            }
        }
    }

    /// Returns the statistics of the key.
    pub(crate) fn stats(&self, key: &str, backend: Option<&Arc<dyn Backend>>) -> KeyStats {
        let levels = self.limit_levels(key, backend);
        let limits =
            levels.limits().zip(&*self.full_plan().rules).map(|((rule, level), original)| {
                LimitStats::new(rule.limit(), original.limit().amount(), level)
            });
        let as_of = backend.map_or(Some(self.now()), |backend| backend.known_at(key));
        let cooling_until = self.cools_until();
        KeyStats {
            limits: limits.collect(),
            as_of,
            waiting: self.waiting(),
            next_at: self.next_at(),
            cooling_until,
            cooling_kind: self.cooling_kind(),
            account_refused: self.account_refusal().map(|refusal| refusal.text.clone()),
            learned: self.learned(),
            utilization: self.utilization(),
            outage: self.evidence().and_then(Adapt::outage),
        }
    }

    /// Returns the local levels of the buckets, each with the amount of its limit.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (u64, Level)> {
        let now = self.now();
        self.limits
            .iter()
            .map(move |(rule, bucket)| (rule.limit().amount(), bucket.level(rule, now)))
    }
}
