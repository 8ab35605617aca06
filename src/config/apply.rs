use std::collections::HashMap;

use super::applied::Applied;
use super::config::Config;
use super::tree::Steps;
use super::value::{ConfiguredQuota, Keys};
use crate::limiter::{Limiter, QuotaOrigin};
use crate::provider::Profile;
use crate::quota::Quota;

impl Config {
    /// Brings a limiter that was made of `previous` to this configuration, as far as that can be done
    /// while it runs: quotas, new providers, what happens to unknown keys, the reduction, and how
    /// many may wait. What was used stays used, and who waits is looked at again.
    ///
    /// Quotas that a program has set or that were learned from responses stay, unless the file now
    /// says something else of that very name than it did before.
    pub fn apply(&self, previous: &Self, limiter: &Limiter) -> Applied {
        let mut applied = Applied::default();
        self.apply_providers(previous, limiter, &mut applied);
        self.apply_quotas(previous, limiter, &mut applied);
        self.apply_policies(previous, limiter, &mut applied);
        applied.needs_restart = self.needs_restart(previous);
        applied
    }

    /// What differs from another configuration that a limiter can't follow while it runs.
    pub(super) fn needs_restart(&self, previous: &Self) -> Vec<String> {
        let sections = [
            ("providers", !self.keeps_providers(previous)),
            ("quotas (the order of regular expressions)", !self.keeps_regexes(previous)),
            ("waiting.max_wait", self.waiting.max_wait != previous.waiting.max_wait),
            ("retry", self.retry != previous.retry),
            ("margin", self.margin != previous.margin),
            ("share", self.share != previous.share),
            ("store", self.store != previous.store),
            ("bus", self.bus != previous.bus),
            ("cluster", self.cluster != previous.cluster),
            ("serve", self.serve != previous.serve),
        ];
        let differing = sections.iter().filter(|(_, differs)| *differs);
        differing.map(|(path, _)| (*path).to_owned()).collect()
    }

    fn apply_providers(&self, previous: &Self, limiter: &Limiter, applied: &mut Applied) {
        let added: Vec<_> = self.providers_added(previous).collect();
        if !added.is_empty() {
            applied.changed.push("providers".to_owned());
        }
        added.iter().for_each(|&&provider| limiter.add_provider(provider));
    }

    fn providers_added<'a>(&'a self, previous: &'a Self) -> impl Iterator<Item = &'a Profile> {
        self.providers.iter().filter(|provider| !previous.providers.contains(provider))
    }

    /// Whether the limiter, which puts new providers behind those that are there, has those of the
    /// file in its order.
    fn keeps_providers(&self, previous: &Self) -> bool {
        previous.providers.iter().chain(self.providers_added(previous)).eq(&self.providers)
    }

    fn apply_quotas(&self, previous: &Self, limiter: &Limiter, applied: &mut Applied) {
        let before = previous.quotas_by_name();
        let now = self.quotas_by_name();
        for configured in &self.quotas {
            let name = configured.keys.name();
            if before.get(&name) != Some(&&configured.quota) {
                limiter.configure_quota(&name, &configured.quota);
                applied.changed.push(path(configured));
            }
        }
        let gone = |quota: &&ConfiguredQuota| !now.contains_key(&quota.keys.name());
        let gone: Vec<_> = previous.quotas.iter().filter(gone).collect();
        if !gone.is_empty() {
            let set: HashMap<_, _> =
                limiter.quotas().into_iter().map(|quota| (quota.name, quota.origin)).collect();
            for configured in gone {
                let name = configured.keys.name();
                if set.get(&name) == Some(&QuotaOrigin::Configured) {
                    limiter.remove_quota(&name);
                }
                applied.changed.push(path(configured));
            }
        }
    }

    fn apply_policies(&self, previous: &Self, limiter: &Limiter, applied: &mut Applied) {
        if self.unknown_key != previous.unknown_key {
            limiter.set_unknown_key(self.unknown_key.clone());
            applied.changed.push("unknown_key".to_owned());
        }
        if self.waiting.max_waiting != previous.waiting.max_waiting {
            limiter.set_max_waiting(self.waiting.max_waiting);
            applied.changed.push("waiting.max_waiting".to_owned());
        }
        if self.reduction != previous.reduction {
            match limiter.set_reduction(&self.reduction) {
                Ok(()) => applied.changed.push("reduction".to_owned()),
                // Its bounds are those of the file.
                Err(error) => tracing::warn!(%error, "the reduction stays as it was"),
            }
        }
    }

    fn quotas_by_name(&self) -> HashMap<String, &Quota> {
        self.quotas.iter().map(|quota| (quota.keys.name(), &quota.quota)).collect()
    }

    /// Whether the limiter, which puts new regular expressions behind those that are there, tries
    /// them in the order of the file.
    fn keeps_regexes(&self, previous: &Self) -> bool {
        let (now, before) = (self.regexes(), previous.regexes());
        let kept = before.iter().filter(|name| now.contains(name));
        let added = now.iter().filter(|name| !before.contains(name));
        kept.chain(added).eq(&now)
    }

    fn regexes(&self) -> Vec<String> {
        let matching = |quota: &&ConfiguredQuota| matches!(quota.keys, Keys::Matching(_));
        self.quotas.iter().filter(matching).map(|quota| quota.keys.name()).collect()
    }
}

fn path(configured: &ConfiguredQuota) -> String {
    let name = match &configured.keys {
        Keys::Named(name) => name.as_str(),
        Keys::Matching(regex) => regex.as_str(),
    };
    Steps::to(["quotas", name]).to_string()
}
