use std::sync::{Arc, Once};

use super::limiter::Limiter;
use crate::backend::{Reservation, Reserved};
use crate::provider::{COMPATIBLE, Profile};
use crate::quota::{Cost, USD, Usage};

/// Requests that bypass the limiter.
impl Limiter {
    /// Charges the usage of one request that bypassed the limiter, even if it doesn't fit.
    ///
    /// Where spending is limited, it is charged the price of the model that the key names. If the key names none, or the
    /// model has no price, it is charged no money, and a warning is logged once.
    pub fn record(&self, key: &str, usage: &Usage) {
        let mut cost =
            Cost::new().tokens(usage.total()).input_tokens(usage.input).output_tokens(usage.output);
        let core = &self.shared.core;
        if core.limits_spending() {
            let (profile, budget) = {
                let quotas = core.quotas.read();
                let profile =
                    quotas.provider(key).and_then(|rules| Profile::of_rules(&**rules.rules()));
                (profile.unwrap_or(COMPATIBLE), quotas.spending_key_of(key))
            };
            match self.prices().of(profile, key) {
                Some(price) => cost = cost.custom(USD, price.cost(usage)),
                None => WARN.call_once(|| {
                    tracing::warn!(
                        key,
                        "no price is known for a recorded usage, it is charged no money"
                    );
                }),
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

/// Limits the warning to once per process, since it would repeat for every usage of a key.
static WARN: Once = Once::new();
