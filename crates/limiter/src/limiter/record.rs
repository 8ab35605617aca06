use std::sync::{Arc, Once};

use super::limiter::Limiter;
use crate::backend::{Reservation, Reserved};
use crate::event::TARGET;
use crate::quota::Cost;

/// Requests that bypass the limiter.
impl Limiter {
    /// Charges one request that bypassed the limiter, even if it doesn't fit: a [`Cost`], or a
    /// [`Usage`](crate::quota::Usage) for its tokens.
    ///
    /// Where the spending of the key is limited, the cost states the money. If it states none, none is charged, and a
    /// warning is logged once.
    ///
    /// ```
    /// use paceline_limiter::Limiter;
    /// use paceline_limiter::quota::{Cost, Quota, Usage, Usd};
    ///
    /// let quota = Quota::new().tpm(1_000_000).usd_per_day(Usd::from_dollars(50));
    /// let limiter = Limiter::builder().quota("gpt-4o", quota).build()?;
    /// let usage = Usage { input: 100_000, output: 10_000, ..Usage::default() };
    /// limiter.record("gpt-4o", Cost::from(&usage).usd("0.35".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record(&self, key: &str, cost: impl Into<Cost>) {
        let cost = cost.into();
        let core = &self.shared.core;
        if core.limits_spending() {
            let budget = core.quotas.read().spending_key_of(key);
            let is_limited = || {
                let quota = self.quotas().of(key);
                budget.is_some() || quota.limits().iter().any(|limit| limit.dimension().is_usd())
            };
            if !cost.states_usd() && !WARN.is_completed() && is_limited() {
                WARN.call_once(|| {
                    tracing::warn!(target: TARGET, key, "a recorded cost states no money, none is charged");
                });
            }
            budget.iter().for_each(|model| self.charge(model, cost.money()));
        }
        self.charge(key, cost);
    }

    fn charge(&self, key: &str, cost: Cost) {
        let budget = self.budget.as_ref();
        let Some(backend) = &self.shared.core.backend else {
            self.shared.with(key, budget, |key| key.charge(&cost));
            return;
        };
        if let Some(reserved) = self.shared.with(key, budget, |key| Reserved::of(key)) {
            backend.charge(&Arc::new(Reservation::without_turn([reserved].into(), cost)));
        }
    }
}

/// Limits the warning to once per process, since it would repeat for every cost of a key.
static WARN: Once = Once::new();
