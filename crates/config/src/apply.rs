use std::collections::HashMap;
use std::sync::Arc;

use paceline_limiter::limiter::{Limiter, QuotaOrigin};
use paceline_limiter::quota::Quota;
use paceline_limiter::seam;
use paceline_provider::Profile;

use crate::applied::Applied;
use crate::config::Config;
use crate::tree::FieldPath;
use crate::value::{ConfiguredQuota, Keys, WaitingConfig};

impl Config {
    /// Applies this configuration to a running limiter that was built from `previous`, and its prices to the layers of
    /// `previous`: quotas, new providers, the policy for unknown keys, prices, the reduction, and the length and order of
    /// queues. Other changes need a restart. Usage is kept, and waiting requests are checked again.
    ///
    /// A quota that a program has set, or that was learned from responses, is replaced only if this
    /// configuration has a quota of the same name that differs from the one in `previous`.
    pub fn apply(&mut self, previous: &Self, limiter: &Limiter) -> Applied {
        let mut applied = Applied::default();
        self.apply_prices(previous, &mut applied);
        self.apply_providers(previous, limiter, &mut applied);
        self.apply_quotas(previous, limiter, &mut applied);
        self.apply_policies(previous, limiter, &mut applied);
        applied.needs_restart = self.needs_restart(&self.in_effect(previous));
        applied
    }

    /// Returns the configuration in effect after [`apply`](Self::apply), without the changes that need a
    /// restart.
    pub(super) fn in_effect(&self, previous: &Self) -> Self {
        let added = self.providers_added(previous);
        Self {
            // New providers are appended, and none is removed.
            providers: previous.providers.iter().chain(added).copied().collect(),
            quotas: self.quotas_in_order(previous),
            unknown_key: self.unknown_key.clone(),
            stated_prices: Arc::clone(&self.stated_prices),
            waiting: WaitingConfig { max_wait: previous.waiting.max_wait, ..self.waiting.clone() },
            reduction: self.reduction,
            sections: self.sections.followed_from(&previous.sections),
            ..previous.clone()
        }
    }

    fn needs_restart(&self, in_effect: &Self) -> Vec<String> {
        let sections = [
            ("providers", self.providers != in_effect.providers),
            ("providers (limits_from)", self.account_limits != in_effect.account_limits),
            ("quotas (the order of regular expressions)", self.regexes() != in_effect.regexes()),
            ("waiting.max_wait", self.waiting.max_wait != in_effect.waiting.max_wait),
            ("retry", self.retry != in_effect.retry),
            ("margin", self.margin != in_effect.margin),
            ("share", self.share != in_effect.share),
            ("store", self.store != in_effect.store),
            ("bus", self.bus != in_effect.bus),
            ("cluster", self.cluster != in_effect.cluster),
        ];
        let differing = sections.iter().filter(|(_, differs)| *differs);
        let differing = differing.map(|(path, _)| *path);
        differing.chain(self.sections.differing(&in_effect.sections)).map(str::to_owned).collect()
    }

    fn apply_providers(&self, previous: &Self, limiter: &Limiter, applied: &mut Applied) {
        let added: Vec<_> = self.providers_added(previous).collect();
        if !added.is_empty() {
            applied.changed.push("providers".to_owned());
        }
        for &provider in added {
            if let Err(error) = limiter.quotas().add_provider(provider) {
                tracing::warn!("provider {}: not loaded: {error}", provider.name());
            }
        }
    }

    fn providers_added<'a>(&'a self, previous: &'a Self) -> impl Iterator<Item = &'a Profile> {
        self.providers.iter().filter(|provider| !previous.providers.contains(provider))
    }

    /// Replaces the prices in the list of the previous configuration, which its layers have, and takes that list over.
    fn apply_prices(&mut self, previous: &Self, applied: &mut Applied) {
        self.stated_prices = self.prices.current();
        let in_effect = previous.prices.current();
        self.prices = previous.prices.clone();
        if ![&previous.stated_prices, &in_effect].contains(&&self.stated_prices) {
            self.prices.replace(Arc::clone(&self.stated_prices));
            applied.changed.push("prices".to_owned());
        }
    }

    fn apply_quotas(&self, previous: &Self, limiter: &Limiter, applied: &mut Applied) {
        let before = previous.quotas_by_name();
        let now = self.quotas_by_name();
        for configured in &self.quotas {
            let name = configured.keys.name();
            if before.get(&name) != Some(&&configured.quota) {
                match seam::configure(limiter, &name, &configured.quota) {
                    Ok(()) => applied.changed.push(path(configured)),
                    Err(error) => tracing::warn!("{}: not applied: {error}", path(configured)),
                }
            }
        }
        let is_removed = |quota: &&ConfiguredQuota| !now.contains_key(&quota.keys.name());
        let removed: Vec<_> = previous.quotas.iter().filter(is_removed).collect();
        if !removed.is_empty() {
            let listed = limiter.quotas().list().into_iter();
            let origins: HashMap<_, _> = listed.map(|quota| (quota.name, quota.origin)).collect();
            for configured in removed {
                let name = configured.keys.name();
                if origins.get(&name) == Some(&QuotaOrigin::Configured) {
                    limiter.quotas().remove(&name);
                }
                applied.changed.push(path(configured));
            }
        }
    }

    fn apply_policies(&self, previous: &Self, limiter: &Limiter, applied: &mut Applied) {
        let in_effect = self.sections.followed_from(&previous.sections);
        applied.changed.extend(in_effect.differing(&previous.sections).map(str::to_owned));
        if self.unknown_key != previous.unknown_key {
            match limiter.quotas().set_unknown_key(self.unknown_key.clone()) {
                Ok(()) => applied.changed.push("unknown_key".to_owned()),
                Err(error) => tracing::warn!("unknown_key: not applied: {error}"),
            }
        }
        if self.waiting.max_waiting != previous.waiting.max_waiting {
            limiter.quotas().set_max_waiting(self.waiting.max_waiting);
            applied.changed.push("waiting.max_waiting".to_owned());
        }
        let (waiting, before) = (&self.waiting, &previous.waiting);
        let policy = [
            ("waiting.bands", waiting.bands != before.bands),
            ("waiting.fair_by", waiting.fair_by != before.fair_by),
            ("waiting.weights", waiting.weights != before.weights),
            ("waiting.max_starvation", waiting.max_starvation != before.max_starvation),
        ];
        if policy.iter().any(|(_, differs)| *differs) {
            limiter.quotas().set_wait_policy(&waiting.policy());
            let differing = policy.iter().filter(|(_, differs)| *differs);
            applied.changed.extend(differing.map(|(path, _)| (*path).to_owned()));
        }
        if self.reduction != previous.reduction {
            match limiter.feedback().set_reduction(&self.reduction) {
                Ok(()) => applied.changed.push("reduction".to_owned()),
                // Unexpected: the file was checked against the same bounds.
                Err(error) => tracing::warn!(%error, "reduction: kept unchanged"),
            }
        }
    }

    fn quotas_by_name(&self) -> HashMap<String, &Quota> {
        self.quotas.iter().map(|quota| (quota.keys.name(), &quota.quota)).collect()
    }

    /// Returns the quotas in the order in which the limiter matches them: new ones come last.
    fn quotas_in_order(&self, previous: &Self) -> Vec<ConfiguredQuota> {
        let before = previous.quotas.iter().enumerate().map(|(at, quota)| (quota.keys.name(), at));
        let before: HashMap<_, _> = before.collect();
        let mut quotas = self.quotas.clone();
        quotas.sort_by_cached_key(|quota| {
            before.get(&quota.keys.name()).copied().unwrap_or(usize::MAX)
        });
        quotas
    }

    fn regexes(&self) -> Vec<String> {
        let matching = |quota: &&ConfiguredQuota| matches!(quota.keys, Keys::Matching(_));
        self.quotas.iter().filter(matching).map(|quota| quota.keys.name()).collect()
    }
}

fn path(configured: &ConfiguredQuota) -> String {
    let name = match &configured.keys {
        Keys::Named(name) | Keys::Matching(name) => name,
    };
    FieldPath::new(["quotas", name]).to_string()
}
