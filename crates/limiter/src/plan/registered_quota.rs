use std::sync::{Arc, OnceLock};

use super::named_quota::{NamedQuota, QuotaOrigin};
use super::pattern::Pattern;
use super::plan::Plan;
use super::provider::Provider;
use crate::quota::{Key, Margin, Quota, Share};

/// A quota of the registry, with its plans: one for keys that count by no provider's rules, and one for the models of
/// each provider.
#[derive(Debug)]
pub(crate) struct RegisteredQuota {
    /// The key or the pattern.
    pub(super) name: Key,
    /// The quota as it was set, before the share is applied.
    pub(super) quota: Quota,
    pub(super) origin: QuotaOrigin,
    kind: QuotaKind,
    /// The provider by whose rules all of its keys count, if it is a provider's own quota.
    pub(super) provider: Option<Provider>,
    /// The key of the buckets that all covered keys share, if they do.
    pub(super) shared: Option<Key>,
    id: u32,
    version: u32,
    /// Made when first needed: that without a provider, then those of the loaded providers.
    plans: Vec<OnceLock<Arc<Plan>>>,
}

/// The place of a quota in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaKind {
    /// Of the keys that it names.
    Own,
    /// A default quota of a provider.
    BuiltIn,
    /// Of keys that no other quota covers.
    Default,
    /// Of unknown keys.
    Unknown,
}

/// What the plans of a registry have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanTerms<'a> {
    pub(super) providers: &'a [Provider],
    pub(super) margin: Margin,
    /// The share of every limit.
    pub(super) share: Share,
}

impl RegisteredQuota {
    pub(super) fn new(
        name: &str,
        quota: &Quota,
        kind: QuotaKind,
        origin: QuotaOrigin,
        id: u32,
        version: u32,
    ) -> Self {
        let shared = quota.is_shared().then(|| Pattern::of(name).name());
        let (name, quota) = (name.into(), quota.clone());
        let plans = vec![OnceLock::new()];
        Self { name, quota, origin, kind, provider: None, shared, id, version, plans }
    }

    /// Makes room for the plans of this many providers in all.
    pub(super) fn make_room(&mut self, providers: usize) {
        self.plans.resize_with(providers + 1, OnceLock::new);
    }

    /// Returns the quota with its name.
    pub(super) fn named(&self) -> NamedQuota {
        NamedQuota::new(self.name.as_str(), self.quota.clone(), self.origin)
    }

    /// Returns `true` if the quota limits spending.
    pub(super) fn limits_spending(&self) -> bool {
        self.quota.limits().iter().any(|limit| limit.dimension().is_usd())
    }

    /// Returns `true` for the quota of unknown keys.
    pub(super) fn is_of_unknown_keys(&self) -> bool {
        self.kind == QuotaKind::Unknown
    }

    /// Returns the plan of a model of this provider; without one that of a key of which no provider counts the
    /// requests.
    pub(super) fn plan(&self, provider: Option<&Provider>, terms: PlanTerms<'_>) -> Arc<Plan> {
        let index = |provider: &Provider| {
            terms.providers.iter().position(|other| other.name() == provider.name())
        };
        let slot = match self.provider {
            Some(_) => 0,
            None => provider.and_then(index).map_or(0, |index| index + 1),
        };
        let provider = self.provider.as_ref().or(provider);
        let plan = || Arc::new(self.new_plan(provider, slot, terms));
        self.plans.get(slot).map_or_else(plan, |known| Arc::clone(known.get_or_init(plan)))
    }

    fn new_plan(&self, provider: Option<&Provider>, slot: usize, terms: PlanTerms<'_>) -> Plan {
        let id = u64::from(self.id) << 16 | u64::try_from(slot).unwrap_or(0);
        let (margin, version) = (terms.margin, self.version);
        if self.is_of_unknown_keys() {
            return Plan::unknown(&self.quota, provider, id, version);
        }
        let part = self.quota.clone().with_share(terms.share);
        let plan = Plan::new(&part, provider, margin, id, version);
        let plan = if self.origin == QuotaOrigin::Learned { plan.learned() } else { plan };
        // Each key that a client sends may learn a quota, so their number is bounded.
        let is_own = self.shared.is_some() || !Pattern::is_one(&self.name);
        let plan = match is_own && self.origin != QuotaOrigin::Learned {
            true => plan.reserved(),
            false => plan,
        };
        match self.kind {
            QuotaKind::BuiltIn => plan.built_in(),
            QuotaKind::Default => plan.unnamed(),
            QuotaKind::Own | QuotaKind::Unknown => plan,
        }
    }
}
