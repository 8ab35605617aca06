use std::sync::Arc;

use super::named_quota::{NamedQuota, QuotaOrigin};
use super::pattern::Pattern;
use super::plan::Plan;
use super::quota_index::QuotaIndex;
use super::unknown_key::UnknownKey;
use crate::provider::Profile;
use crate::provider::account_limits::ModelLimits;
use crate::quota::{Algorithm, Dimension, Key, Limit, Margin, Quota, Share, UnknownZone, Window};

/// The quotas of a limiter. A key has its own quota, else that of the most specific glob, else of the
/// first regular expression, else for a mode that of its model, else a provider's built-in quota, else that of the
/// policy for unknown keys.
#[derive(Debug)]
pub(crate) struct QuotaRegistry {
    pub(super) own: QuotaIndex<RegisteredQuota>,
    pub(super) built_in: QuotaIndex<RegisteredQuota>,
    pub(super) profiles: Vec<Profile>,
    /// For unknown keys; `None` if they are refused.
    pub(super) fallback: Option<RegisteredQuota>,
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

/// A quota of the registry.
#[derive(Debug)]
pub(crate) struct RegisteredQuota {
    /// The key or the pattern.
    name: Key,
    profile: Option<Profile>,
    /// The quota as it was set, before the share is applied.
    quota: Quota,
    origin: QuotaOrigin,
    pub(crate) plan: Arc<Plan>,
    /// The key of the buckets that all covered keys share, if they do.
    pub(super) shared: Option<Key>,
}

impl QuotaRegistry {
    pub(crate) fn new(
        profiles: &[Profile],
        unknown: &UnknownKey,
        margin: Margin,
        share: Share,
    ) -> Result<Self, UnknownZone> {
        let mut quotas = Self {
            own: QuotaIndex::default(),
            built_in: QuotaIndex::default(),
            profiles: Vec::new(),
            fallback: None,
            margin,
            share,
            last_id: 0,
            limits_spending: false,
            changes: 0,
        };
        profiles.iter().try_for_each(|&profile| quotas.add_provider(profile, 0))?;
        quotas.set_unknown(unknown.clone(), 0);
        Ok(quotas)
    }

    /// Sets the policy for unknown keys.
    pub(crate) fn set_unknown(&mut self, unknown: UnknownKey, version: u32) {
        let profile = self.profiles.first().copied();
        self.fallback = match unknown {
            UnknownKey::Allow => Some(self.unknown_entry(Quota::new(), version)),
            UnknownKey::Refuse => None,
            UnknownKey::Learn => Some(self.unknown_entry(Quota::new().concurrency(1), version)),
            UnknownKey::Quota(quota) => {
                let origin = QuotaOrigin::Configured;
                Some(self.entry("*", &quota, profile, origin, version).unnamed())
            }
        };
    }

    fn unknown_entry(&mut self, quota: Quota, version: u32) -> RegisteredQuota {
        self.last_id += 1;
        let plan = Arc::new(Plan::unknown(&quota, self.last_id, version));
        let name = Key::default();
        RegisteredQuota {
            name,
            profile: None,
            quota,
            origin: QuotaOrigin::Configured,
            plan,
            shared: None,
        }
    }

    /// Adds a profile after the existing ones: completely or not at all.
    pub(crate) fn add_provider(
        &mut self,
        profile: Profile,
        version: u32,
    ) -> Result<(), UnknownZone> {
        let quotas = profile.quotas().iter().map(|default| Ok((default.pattern, default.quota()?)));
        let quotas = quotas.collect::<Result<Vec<_>, _>>()?;
        self.profiles.push(profile);
        for (pattern, quota) in quotas {
            if self.built_in.named(pattern).is_none() {
                let origin = QuotaOrigin::Configured;
                let entry = self.entry(pattern, &quota, Some(profile), origin, version);
                let entry = entry.built_in();
                self.built_in.insert(pattern, entry);
            }
        }
        Ok(())
    }

    /// Sets the quota of a key, of a glob, or of a regular expression.
    pub(crate) fn set(&mut self, name: &str, quota: &Quota, origin: QuotaOrigin, version: u32) {
        let profile = self.profile(name);
        let entry = self.entry(name, quota, profile, origin, version);
        self.own.insert(name, entry);
        self.changes += 1;
    }

    /// Sets a stored quota, unless one of this name exists. Returns `true` if it was set.
    pub(crate) fn restore(&mut self, stored: &NamedQuota, version: u32) -> bool {
        let is_new = self.own.named(&stored.name).is_none();
        if is_new {
            self.set(&stored.name, &stored.quota, stored.origin, version);
        }
        is_new
    }

    /// Sets the limits that a provider states for models, and removes those that it doesn't state any more.
    /// Models that a quota of the user covers are left out. Returns the number of models whose limits changed.
    pub(crate) fn follow_provider(
        &mut self,
        profile: Profile,
        limits: &[ModelLimits],
        version: u32,
    ) -> usize {
        let is_stated = |entry: &RegisteredQuota| {
            entry.origin == QuotaOrigin::Provider && entry.profile == Some(profile)
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
                        let origin = QuotaOrigin::Provider;
                        let entry = self.entry(model, quota, Some(profile), origin, version);
                        RegisteredQuota { shared: shared.cloned(), ..entry }
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
        let all = self.own.iter();
        let named = |(name, entry): (_, &RegisteredQuota)| {
            NamedQuota::new(name, entry.quota.clone(), entry.origin)
        };
        let mut all: Vec<_> = all.map(named).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the quota of [`list`](Self::list) with exactly this name.
    pub(crate) fn of_name(&self, name: &str) -> Option<NamedQuota> {
        let entry = self.own.named(name)?;
        Some(NamedQuota::new(entry.name.as_str(), entry.quota.clone(), entry.origin))
    }

    /// Returns the number of quotas, without the built-in ones.
    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }

    /// Sets the quota learned from a response, if there is one. Returns it, and `true` if the key had
    /// none before.
    pub(crate) fn learn(
        &mut self,
        key: &str,
        limits: &[Limit],
        version: u32,
    ) -> Option<(Quota, bool)> {
        let quota = self.learned_quota(key, limits)?;
        let first = self.find(key).is_none();
        self.set(key, &quota, QuotaOrigin::Learned, version);
        Some((quota, first))
    }

    /// Sets the algorithm of a quota learned from responses that have shown that its limits refill all the time.
    /// Returns it.
    pub(crate) fn learn_refill(&mut self, key: &str, version: u32) -> Option<Quota> {
        let learned = |entry: &&RegisteredQuota| entry.origin == QuotaOrigin::Learned;
        let entry = self.own.named(key).filter(learned)?;
        let old = entry.quota.clone();
        let limits: Vec<_> = old.limits().iter().map(refilled).collect();
        let quota = limits.into_iter().fold(old, Quota::limit);
        self.set(key, &quota, QuotaOrigin::Learned, version);
        Some(quota)
    }

    /// Returns whether a response without limits changes the quota of its key.
    pub(crate) fn learns_missing_limits(&self) -> bool {
        let is_unknown = |entry: &RegisteredQuota| !entry.plan.known && !entry.quota.is_unlimited();
        self.fallback.as_ref().is_some_and(is_unknown)
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
                (None, None) => self.fallback.as_ref().is_some_and(|entry| !entry.plan.known),
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
    /// refused.
    pub(crate) fn resolve(&self, key: &str) -> Option<ResolvedQuota> {
        self.resolve_or(key, None)
    }

    /// Returns the buckets and the plan of a key, which has the default plan if no quota covers it.
    pub(crate) fn resolve_or(
        &self,
        key: &str,
        default: Option<&Arc<Plan>>,
    ) -> Option<ResolvedQuota> {
        if let (None, Some(plan)) = (self.find(key), default) {
            return Some(ResolvedQuota { key: key.into(), plan: Arc::clone(plan) });
        }
        if let (None, Some(model)) = (self.own.find(key), self.of_mode(key)) {
            let plan = self
                .with_spending_key_of(key, &model.plan)
                .unwrap_or_else(|| Plan::clone(&model.plan));
            return Some(ResolvedQuota { key: key.into(), plan: Arc::new(plan.built_in()) });
        }
        let entry = self.find(key).or(self.fallback.as_ref())?;
        let plan = self.with_spending_key_of(key, &entry.plan);
        let plan = plan.map_or_else(|| Arc::clone(&entry.plan), Arc::new);
        let key = entry.shared.clone().unwrap_or_else(|| key.into());
        Some(ResolvedQuota { key, plan })
    }

    /// Returns a plan for limits that came with a request.
    pub(crate) fn given(&self, key: &str, quota: &Quota, version: u32) -> Plan {
        let profile = self.profile(key);
        let plan = Plan::new(quota, profile.as_ref(), self.margin, NO_ID, version);
        let plan = plan.given(quota.clone());
        if self.find_spending_key(key).is_some() { plan.with_spending_key() } else { plan }
    }

    /// Returns the name of the quota that covers a key.
    pub(crate) fn name_of(&self, key: &str) -> Option<&Key> {
        self.find(key).map(|entry| &entry.name)
    }

    /// Returns the keys that a quota names exactly.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Key> {
        self.own.exact()
    }

    /// Returns the profile of a key: the first whose built-in quotas cover it, else the first.
    pub(crate) fn profile(&self, key: &str) -> Option<Profile> {
        let named = self.of_mode(key).or_else(|| self.built_in.find(key));
        let named = named.and_then(|entry| entry.profile);
        named.or_else(|| self.profiles.first().copied())
    }

    pub(super) fn find(&self, key: &str) -> Option<&RegisteredQuota> {
        let own = self.own.find(key).or_else(|| self.of_mode(key));
        own.or_else(|| self.built_in.find(key))
    }

    fn entry(
        &mut self,
        name: &str,
        quota: &Quota,
        profile: Option<Profile>,
        origin: QuotaOrigin,
        version: u32,
    ) -> RegisteredQuota {
        self.last_id += 1;
        self.limits_spending |= quota.limits().iter().any(|limit| limit.dimension().is_usd());
        let part = quota.clone().with_share(self.share);
        let plan = Plan::new(&part, profile.as_ref(), self.margin, self.last_id, version);
        let plan = if origin == QuotaOrigin::Learned { plan.learned() } else { plan };
        let shared = quota.is_shared().then(|| Pattern::of(name).name());
        // Each key that a client sends may learn a quota, so their number is bounded.
        let is_own = shared.is_some() || !Pattern::is_one(name);
        let plan = match is_own && origin != QuotaOrigin::Learned {
            true => plan.reserved(),
            false => plan,
        };
        RegisteredQuota {
            name: name.into(),
            profile,
            quota: quota.clone(),
            origin,
            plan: Arc::new(plan),
            shared,
        }
    }
}

impl RegisteredQuota {
    /// Returns the entry of a built-in quota.
    fn built_in(mut self) -> Self {
        self.plan = Arc::new(Arc::unwrap_or_clone(self.plan).built_in());
        self
    }

    /// Returns the entry for keys that no quota names.
    fn unnamed(mut self) -> Self {
        self.plan = Arc::new(Arc::unwrap_or_clone(self.plan).unnamed());
        self
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
const NO_ID: u32 = u32::MAX;
