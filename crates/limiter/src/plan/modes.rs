use std::sync::Arc;

use super::pattern::Pattern;
use super::plan::Plan;
use super::provider::Provider;
use super::quota_registry::QuotaRegistry;
use super::registered_quota::RegisteredQuota;
use crate::quota::Key;

/// The modes of models, which have limits of their own and count to the budgets of the models.
impl QuotaRegistry {
    /// Returns the name of a quota that limits spending and covers a model of this provider, so that a request whose
    /// model is unknown may be one of its own. Models are the names with a price: `any_priced` finds one that fulfils a
    /// condition. `patterns` are those of the provider's default quotas.
    pub(crate) fn budget_of_models(
        &self,
        provider: &str,
        patterns: &[&str],
        has_price: impl Fn(&str) -> bool,
        any_priced: impl Fn(&dyn Fn(&str) -> bool) -> bool,
    ) -> Option<&Key> {
        let covers_model = |quota: &&RegisteredQuota| {
            let name = &quota.name;
            let model = self.model_of_mode(name).unwrap_or(name);
            if !Pattern::is_one(name) {
                return self.may_be_of(provider, patterns, model)
                    && (has_price(name) || has_price(model));
            }
            let (of_model, pattern) = (Pattern::of(model), Pattern::of(name));
            let covers = |model: &str| pattern.covers(model) || of_model.covers(model);
            any_priced(&|model| covers(model) && self.may_be_of(provider, patterns, model))
        };
        let limited = self.own.iter().chain(&self.fallback).filter(|quota| quota.limits_spending());
        let mut limited: Vec<_> = limited.collect();
        limited.sort_by(|a, b| a.name.cmp(&b.name));
        limited.into_iter().find(covers_model).map(|quota| &quota.name)
    }

    /// Returns `false` if a model is known to be another provider's: that provider has built-in quotas of its family, and
    /// this one only of other families.
    fn may_be_of(&self, provider: &str, patterns: &[&str], model: &str) -> bool {
        let is_of = |pattern: &str| [family(model), ""].contains(&family(pattern));
        let others = self.providers.iter().filter(|other| other.name() != provider);
        let mut others = others.filter_map(|other| other.quotas().ok()).flatten();
        patterns.is_empty()
            || patterns.iter().any(|pattern| is_of(pattern))
            || !others.any(|(pattern, _)| is_of(pattern))
    }

    /// Returns the keys of a model's requests in the modes of the providers.
    pub(crate) fn modes_of(&self, model: &str) -> Vec<String> {
        let modes = self.providers.iter().flat_map(Provider::modes);
        modes.map(|mode| format!("{model}:{mode}")).collect()
    }

    /// Returns the quota of the model whose requests in a mode have this key, `MODEL:MODE`: a starting point for
    /// the limits of the mode.
    pub(super) fn of_mode(&self, key: &str) -> Option<&RegisteredQuota> {
        let model = self.model_of_mode(key)?;
        self.covering(&self.own, model).or_else(|| self.covering(&self.built_in, model))
    }

    /// Returns the model whose requests in a mode have this key.
    pub(crate) fn model_of_mode<'k>(&self, key: &'k str) -> Option<&'k str> {
        if self.providers.is_empty() {
            return None;
        }
        let (model, mode) = key.rsplit_once(':')?;
        let is_known = self.providers.iter().flat_map(Provider::modes).any(|known| known == mode);
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
        let plan = match self.find_spending_key(key) {
            Some((_, budget)) if std::ptr::eq(quota, budget) => plan.without_spending(),
            Some(_) => plan.clone(),
            None if self.shares_modes(quota) => plan.clone(),
            None => return None,
        };
        Some(Arc::new(plan.with_spending_key()))
    }

    /// Returns `true` if keys of modes may share the buckets of a quota. Some of these may count to budgets of their
    /// models, so that the buckets alone never decide.
    fn shares_modes(&self, quota: &RegisteredQuota) -> bool {
        let mut modes = self.providers.iter().flat_map(Provider::modes);
        self.limits_spending && quota.shared.is_some() && modes.next().is_some()
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
        let of_mode = self.covering(&self.own, key).filter(|of_mode| of_mode.shared.is_some());
        of_mode.is_none_or(|of_mode| of_mode.shared != quota.shared).then_some((model, quota))
    }
}

/// Returns the start of a model's name that all models of its family have, such as `gpt`.
fn family(model: &str) -> &str {
    model.split(['-', '.', ':', '/', '@', '*', '?']).next().unwrap_or_default()
}
