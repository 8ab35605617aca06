use std::sync::Arc;

use super::plan::Plan;
use super::quota_registry::QuotaRegistry;
use super::registered_quota::RegisteredQuota;
use crate::provider::Profile;
use crate::quota::Key;

/// The modes of models, which have limits of their own and count to the budgets of the models.
impl QuotaRegistry {
    /// Returns the keys of a model's requests in the modes of the providers.
    pub(crate) fn modes_of(&self, model: &str) -> Vec<String> {
        let modes = self.profiles.iter().flat_map(Profile::modes);
        modes.map(|mode| format!("{model}:{mode}")).collect()
    }

    /// Returns the quota of the model whose requests in a mode have this key, `MODEL:MODE`: a starting point for
    /// the limits of the mode.
    pub(super) fn of_mode(&self, key: &str) -> Option<&RegisteredQuota> {
        let model = self.model_of_mode(key)?;
        self.own.find(model).or_else(|| self.built_in.find(model))
    }

    /// Returns the model whose requests in a mode have this key.
    pub(crate) fn model_of_mode<'k>(&self, key: &'k str) -> Option<&'k str> {
        if self.profiles.is_empty() {
            return None;
        }
        let (model, mode) = key.rsplit_once(':')?;
        let is_known = self.profiles.iter().flat_map(Profile::modes).any(|known| known == mode);
        is_known.then_some(model)
    }

    /// Returns the plan of a key with this quota that counts to the budget of another one: without the limits on spending that are
    /// those of the budget.
    pub(super) fn with_spending_key_of(
        &self,
        key: &str,
        quota: &RegisteredQuota,
        plan: &Plan,
    ) -> Option<Arc<Plan>> {
        let (_, budget) = self.find_spending_key(key)?;
        let has_same_quota = std::ptr::eq(quota, budget);
        let plan = if has_same_quota { plan.without_spending() } else { plan.clone() };
        Some(Arc::new(plan.with_spending_key()))
    }

    /// Returns the key to whose limits on spending the requests of another key count as well: the model, if the key is
    /// that of a mode.
    pub(crate) fn spending_key_of(&self, key: &str) -> Option<Key> {
        self.find_spending_key(key).map(|(model, _)| model.into())
    }

    /// Returns that key and its quota.
    pub(super) fn find_spending_key<'k>(
        &self,
        key: &'k str,
    ) -> Option<(&'k str, &RegisteredQuota)> {
        if !self.limits_spending {
            return None;
        }
        let model = self.model_of_mode(key)?;
        let quota = self.find(model).or(self.fallback.as_ref());
        let quota = quota.filter(|quota| quota.limits_spending())?;
        // A quota that both share counts their requests once.
        let of_mode = self.own.find(key).filter(|of_mode| of_mode.shared.is_some());
        of_mode.is_none_or(|of_mode| of_mode.shared != quota.shared).then_some((model, quota))
    }
}
