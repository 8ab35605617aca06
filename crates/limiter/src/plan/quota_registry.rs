use std::sync::Arc;

use super::model_limits::ModelLimits;
use super::named_quota::{NamedQuota, QuotaOrigin};
use super::pattern::Pattern;
use super::plan::Plan;
use super::provider::Provider;
use super::quota_index::QuotaIndex;
use super::registered_quota::{PlanTerms, QuotaKind, RegisteredQuota};
use super::unknown_key::UnknownKey;
use crate::quota::{Algorithm, Dimension, Key, Limit, Margin, Quota, Share, UnknownZone, Window};

/// The quotas of a limiter. A key has its own quota, else that of the most specific glob, else of the
/// first regular expression, else for a mode that of its model, else a provider's built-in quota, else that of the
/// policy for unknown keys.
#[derive(Debug)]
pub(crate) struct QuotaRegistry {
    pub(super) own: QuotaIndex<RegisteredQuota>,
    pub(super) built_in: QuotaIndex<RegisteredQuota>,
    pub(super) providers: Vec<Provider>,
    /// For unknown keys; `None` if they are refused.
    pub(super) fallback: Option<RegisteredQuota>,
    /// The prefix of keys that have the quota of the name after it, in buckets of their own.
    pub(crate) name_space: Option<&'static str>,
    margin: Margin,
    /// The share of every limit.
    share: Share,
    last_id: u32,
    /// `true` once a quota has limited spending.
    pub(crate) limits_spending: bool,
    /// Increases whenever a quota is set, learned or removed.
    pub(crate) changes: u64,
}

/// The buckets that a key uses.
#[derive(Debug)]
pub(crate) struct ResolvedQuota {
    /// The key of the buckets: the key itself, or the name of a shared quota.
    pub(crate) key: Key,
    pub(crate) plan: Arc<Plan>,
}

impl QuotaRegistry {
    pub(crate) fn new(
        providers: Vec<Provider>,
        unknown: &UnknownKey,
        margin: Margin,
        share: Share,
    ) -> Result<Self, UnknownZone> {
        let mut quotas = Self {
            own: QuotaIndex::default(),
            built_in: QuotaIndex::default(),
            providers: Vec::new(),
            fallback: None,
            name_space: None,
            margin,
            share,
            last_id: 0,
            limits_spending: false,
            changes: 0,
        };
        providers.into_iter().try_for_each(|provider| quotas.add_provider(provider, 0))?;
        quotas.set_unknown(unknown.clone(), 0);
        Ok(quotas)
    }

    /// Sets the policy for unknown keys.
    pub(crate) fn set_unknown(&mut self, unknown: UnknownKey, version: u32) {
        let mut of_unknown =
            |quota: Quota| Some(self.entry("", &quota, QuotaKind::Unknown, version));
        self.fallback = match unknown {
            UnknownKey::Allow => of_unknown(Quota::new()),
            UnknownKey::Refuse => None,
            UnknownKey::Learn => of_unknown(Quota::new().concurrency(1)),
            UnknownKey::Quota(quota) => Some(self.entry("*", &quota, QuotaKind::Default, version)),
        };
    }

    /// Adds a provider after the existing ones: completely or not at all.
    pub(crate) fn add_provider(
        &mut self,
        provider: Provider,
        version: u32,
    ) -> Result<(), UnknownZone> {
        for (pattern, quota) in provider.quotas()? {
            if self.built_in.named(pattern).is_none() {
                let mut entry = self.entry(pattern, quota, QuotaKind::BuiltIn, version);
                entry.provider = Some(provider.clone());
                self.built_in.insert(pattern, entry);
            }
        }
        self.providers.push(provider);
        let entries = self.own.entries_mut().chain(&mut self.fallback);
        entries.for_each(|entry| entry.make_room(self.providers.len()));
        Ok(())
    }

    /// Sets the quota of a key, of a glob, or of a regular expression.
    pub(crate) fn set(&mut self, name: &str, quota: &Quota, origin: QuotaOrigin, version: u32) {
        let mut entry = self.entry(name, quota, QuotaKind::Own, version);
        entry.origin = origin;
        self.insert(name, entry);
    }

    /// Sets the quota of a model that counts by the rules of this provider.
    fn set_learned(&mut self, name: &str, quota: &Quota, provider: Option<Provider>, version: u32) {
        let mut entry = self.entry(name, quota, QuotaKind::Own, version);
        (entry.origin, entry.provider) = (QuotaOrigin::Learned, provider);
        self.insert(name, entry);
    }

    fn insert(&mut self, name: &str, entry: RegisteredQuota) {
        self.own.insert(name, entry);
        self.changes += 1;
    }

    /// Sets a stored quota, unless one of this name exists. Returns `true` if it was set.
    pub(crate) fn restore(&mut self, stored: &NamedQuota, version: u32) -> bool {
        let NamedQuota { name, quota, origin } = stored;
        let is_new = self.own.named(name).is_none();
        match origin {
            _ if !is_new => {}
            QuotaOrigin::Learned => {
                let provider = self.provider(name).cloned();
                self.set_learned(name, quota, provider, version);
            }
            _ => self.set(name, quota, *origin, version),
        }
        is_new
    }

    /// Sets the limits that a provider states for models, and removes those that it doesn't state any more.
    /// Models that a quota of the user covers are left out. Returns the number of models whose limits changed.
    pub(crate) fn follow_provider(
        &mut self,
        provider: &Provider,
        limits: &[ModelLimits],
        version: u32,
    ) -> usize {
        let is_stated = |entry: &RegisteredQuota| {
            let name = entry.provider.as_ref().map(|provider| provider.name());
            entry.origin == QuotaOrigin::Provider && name == Some(provider.name())
        };
        let mut old = self.own.take_exact(is_stated);
        let mut changed = 0;
        for ModelLimits { models, quota } in limits {
            let is_users = |model: &str| {
                let covering = self.own.find(model);
                covering.is_some_and(|entry| entry.origin != QuotaOrigin::Learned)
            };
            let models = models.iter().filter(|model| !Pattern::is_one(model) && !is_users(model));
            let models: Vec<Key> = models.map(|model| model.as_str().into()).collect();
            for model in &models {
                let shared = models.first().filter(|_| models.len() > 1);
                let is_same =
                    |old: &RegisteredQuota| old.quota == *quota && old.shared.as_ref() == shared;
                let entry = match old.remove(model) {
                    Some(old) if is_same(&old) => old,
                    _ => {
                        changed += 1;
                        let mut entry = self.entry(model, quota, QuotaKind::Own, version);
                        (entry.origin, entry.shared) = (QuotaOrigin::Provider, shared.cloned());
                        entry.provider = Some(provider.clone());
                        entry
                    }
                };
                self.own.insert(model, entry);
            }
        }
        changed += old.len();
        self.changes += u64::from(changed > 0);
        changed
    }

    /// Removes a quota by name. Returns `true` if it existed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let removed = self.own.remove(name);
        self.changes += u64::from(removed);
        removed
    }

    /// Returns all quotas except built-in ones, sorted by name.
    pub(crate) fn list(&self) -> Vec<NamedQuota> {
        let mut all: Vec<_> = self.own.iter().map(RegisteredQuota::named).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the quota of [`list`](Self::list) with exactly this name.
    pub(crate) fn of_name(&self, name: &str) -> Option<NamedQuota> {
        self.own.named(name).map(RegisteredQuota::named)
    }

    /// Returns the number of quotas, without the built-in ones.
    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }

    /// Sets the quota learned from a response, if there is one. Returns it, and `true` if the key had
    /// none before. `read_by` is the name of the provider by whose rules the key counts so far.
    pub(crate) fn learn(
        &mut self,
        key: &str,
        limits: &[Limit],
        read_by: Option<&str>,
        version: u32,
    ) -> Option<(Quota, bool)> {
        let quota = self.learned_quota(key, limits)?;
        let first = self.find(key).is_none();
        // The provider counts the requests of a key whose limits it states.
        let provider = self.provider_of(key, read_by).or_else(|| self.provider(key)).cloned();
        self.set_learned(key, &quota, provider, version);
        Some((quota, first))
    }

    /// Sets the algorithm of a quota learned from responses that have shown that its limits refill all the time.
    /// Returns it.
    pub(crate) fn learn_refill(&mut self, key: &str, version: u32) -> Option<Quota> {
        let learned = |entry: &&RegisteredQuota| entry.origin == QuotaOrigin::Learned;
        let entry = self.own.named(key).filter(learned)?;
        let (old, provider) = (entry.quota.clone(), entry.provider.clone());
        let limits: Vec<_> = old.limits().iter().map(refilled).collect();
        let quota = limits.into_iter().fold(old, Quota::limit);
        self.set_learned(key, &quota, provider, version);
        Some(quota)
    }

    /// Returns whether a response without limits changes the quota of its key.
    pub(crate) fn learns_missing_limits(&self) -> bool {
        let is_learned =
            |entry: &RegisteredQuota| entry.is_of_unknown_keys() && !entry.quota.is_unlimited();
        self.fallback.as_ref().is_some_and(is_learned)
    }

    /// Returns the quota of a key learned from these limits: all of them if no quota was set, else the
    /// new amounts of limits learned before. Any limits replace a provider's built-in quota, which is
    /// only an assumption about the account. A limit with another window is added only for a dimension
    /// without one, since headers don't state the window and the assumed one may be wrong.
    pub(crate) fn learned_quota(&self, key: &str, limits: &[Limit]) -> Option<Quota> {
        let of_all = |quota, limit: &Limit| Quota::limit(quota, limit.clone());
        let learned = |entry: &&RegisteredQuota| entry.origin == QuotaOrigin::Learned;
        let Some(RegisteredQuota { quota: old, .. }) = self.own.named(key).filter(learned) else {
            let start = self.of_mode(key).or_else(|| self.built_in.find(key));
            let teaches = match (self.own.find(key), start) {
                (Some(_), _) => false,
                (None, Some(_)) => !limits.is_empty(),
                (None, None) if limits.is_empty() => self.learns_missing_limits(),
                (None, None) => {
                    self.fallback.as_ref().is_some_and(RegisteredQuota::is_of_unknown_keys)
                }
            };
            return teaches.then(|| limits.iter().fold(Quota::new(), of_all));
        };
        let follows = |new: &&Limit| {
            let mut same = old.limits().iter().filter(|old| old.dimension() == new.dimension());
            same.clone().next().is_none() || same.any(|old| old.window() == new.window())
        };
        let has_buckets = |limit: &Limit| limit.algorithm() == Some(Algorithm::TokenBucket);
        let has_buckets = old.limits().iter().any(has_buckets);
        let counted = |new: &Limit| if has_buckets { refilled(new) } else { new.clone() };
        let quota = limits.iter().filter(follows).map(counted).fold(old.clone(), Quota::limit);
        (quota != *old).then_some(quota)
    }

    /// Returns the buckets and the plan of a key; `None` if the key is unknown and unknown keys are
    /// refused. `read_by` is the name of the provider that has read the key as the model of a request.
    pub(crate) fn resolve(&self, key: &str, read_by: Option<&str>) -> Option<ResolvedQuota> {
        self.resolve_or(key, read_by, None)
    }

    /// Returns the buckets and the plan of a key, which has the default plan if no quota covers it.
    pub(crate) fn resolve_or(
        &self,
        key: &str,
        read_by: Option<&str>,
        default: Option<&Arc<Plan>>,
    ) -> Option<ResolvedQuota> {
        let own = self.covering(&self.own, key);
        let of_mode = if own.is_none() { self.of_mode(key) } else { None };
        let covering = own.or(of_mode).or_else(|| self.covering(&self.built_in, key));
        if let (None, Some(plan)) = (covering, default) {
            return Some(ResolvedQuota { key: key.into(), plan: Arc::clone(plan) });
        }
        let plan = |entry: &RegisteredQuota| {
            let (providers, margin, share) = (&self.providers[..], self.margin, self.share);
            entry.plan(self.provider_of(key, read_by), PlanTerms { providers, margin, share })
        };
        if let Some(model) = of_mode {
            let plan = plan(model);
            let plan = self.with_spending_key_of(key, model, &plan).unwrap_or(plan);
            let plan = Arc::new(Plan::clone(&plan).built_in());
            return Some(ResolvedQuota { key: key.into(), plan });
        }
        let entry = covering.or(self.fallback.as_ref())?;
        let plan = plan(entry);
        let plan = self.with_spending_key_of(key, entry, &plan).unwrap_or(plan);
        let shared = entry.shared.as_ref().map(|shared| self.shared_key(shared, key));
        let key = shared.unwrap_or_else(|| key.into());
        Some(ResolvedQuota { key, plan })
    }

    /// Returns a plan for limits that came with a request.
    pub(crate) fn given(
        &self,
        key: &str,
        quota: &Quota,
        read_by: Option<&str>,
        version: u32,
    ) -> Plan {
        let provider = self.provider_of(key, read_by);
        let plan = Plan::new(quota, provider, self.margin, NO_ID, version);
        let plan = plan.given(quota.clone());
        if self.find_spending_key(key).is_some() { plan.with_spending_key() } else { plan }
    }

    /// Returns the name of the quota that covers a key.
    pub(crate) fn name_of(&self, key: &str) -> Option<&Key> {
        self.find(key).map(|entry| &entry.name)
    }

    /// Returns `true` if keys share the buckets of this key.
    pub(crate) fn is_shared(&self, key: &str) -> bool {
        let all = self.own.iter().chain(self.built_in.iter()).chain(&self.fallback);
        let name = self.split(key).map_or(key, |(_, name)| name);
        let mut shared = all.filter_map(|entry| entry.shared.as_ref());
        shared.any(|shared| *shared == *key || *shared == *name)
    }

    /// Returns the keys that a quota names exactly.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Key> {
        self.own.exact()
    }

    /// Returns the provider of a model: the first whose default quotas cover it, else the first.
    pub(crate) fn provider(&self, model: &str) -> Option<&Provider> {
        self.provider_of_known(model).or_else(|| self.providers.first())
    }

    /// Returns the provider by whose rules a key counts: that of a model, which default quotas name or a provider has
    /// read from a request. Of other keys, such as a tenant or an account, no provider counts the requests.
    fn provider_of(&self, key: &str, read_by: Option<&str>) -> Option<&Provider> {
        let read_by = || {
            let name = read_by?;
            let named = self.providers.iter().find(|provider| provider.name() == name);
            named.or(self.providers.first())
        };
        self.provider_of_known(key).or_else(read_by)
    }

    /// Returns the first provider whose default quotas name a model.
    fn provider_of_known(&self, key: &str) -> Option<&Provider> {
        if self.providers.is_empty() {
            return None;
        }
        let model = self.model_of_mode(key).unwrap_or(key);
        self.covering(&self.built_in, model).and_then(|entry| entry.provider.as_ref())
    }

    /// Returns `true` if there are providers by whose rules models count.
    pub(crate) fn has_providers(&self) -> bool {
        !self.providers.is_empty()
    }

    pub(super) fn find(&self, key: &str) -> Option<&RegisteredQuota> {
        let own = self.covering(&self.own, key).or_else(|| self.of_mode(key));
        own.or_else(|| self.covering(&self.built_in, key))
    }

    fn entry(
        &mut self,
        name: &str,
        quota: &Quota,
        kind: QuotaKind,
        version: u32,
    ) -> RegisteredQuota {
        self.last_id += 1;
        self.limits_spending |= quota.limits().iter().any(|limit| limit.dimension().is_usd());
        let (id, origin) = (self.last_id, QuotaOrigin::Configured);
        let mut entry = RegisteredQuota::new(name, quota, kind, origin, id, version);
        entry.make_room(self.providers.len());
        entry
    }
}

/// Returns a limit as a token bucket. Limits per day may still be those of calendar days.
fn refilled(limit: &Limit) -> Limit {
    let is_rate = *limit.dimension() != Dimension::Concurrency && limit.window() < Window::DAY;
    match is_rate {
        true => limit.clone().with_algorithm(Algorithm::TokenBucket),
        false => limit.clone(),
    }
}

/// The id of plans whose limits came with a request.
const NO_ID: u64 = u64::MAX;
