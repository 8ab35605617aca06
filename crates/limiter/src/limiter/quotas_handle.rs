use std::sync::Arc;

#[cfg(feature = "regex")]
use regex::Regex;

use super::key_state::KeyState;
use super::shared::Shared;
use super::wait_policy::WaitPolicy;
use crate::answer::error::BuildError;
#[cfg(feature = "regex")]
use crate::plan::regex_name;
use crate::plan::{
    LimitRules, MissingFeature, ModelLimits, NamedQuota, Provider, QuotaOrigin, QuotaRegistry,
    UnknownKey,
};
use crate::quota::{Key, Quota, UnknownZone};
use crate::sync::atomic::Ordering;

/// A handle to the quotas and settings of a [`Limiter`](super::Limiter), which can change while it runs.
///
/// A change applies immediately: usage is kept, reservations stay held, and waiting requests are
/// checked again. A limit that replaces others of its dimension, with another window or algorithm, counts what
/// these know of its window, each amount at the latest time at which it can have been used. Several such changes within
/// a window count less exactly: a token bucket knows at most twice its amount, so that one which was in force between
/// two larger limits forgets the rest, and one whose earlier usage is unknown may admit nothing for up to three windows. A
/// key that leaves a shared quota for one of its own starts unused, since the share doesn't tell its keys apart.
///
/// ```
/// use paceline_limiter::{Limiter, Quota};
/// let limiter = Limiter::builder().quota("tenant:*", Quota::new().rpm(10)).build()?;
/// limiter.quotas().set("tenant:7", &Quota::new().rpm(100))?;
/// assert_eq!(limiter.quotas().of("tenant:7"), Quota::new().rpm(100));
/// assert_eq!(limiter.quotas().of("tenant:8"), Quota::new().rpm(10));
/// assert!(limiter.quotas().remove("tenant:7"));
/// assert_eq!(limiter.quotas().len(), 1);
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quotas<'a>(pub(super) &'a Shared);

impl Quotas<'_> {
    /// Sets the quota of a key, of a glob, or of a regular expression by the name `regex:PATTERN`.
    ///
    /// Limits that came with a request ([`Acquire::limits`](super::Acquire::limits)) are replaced by a quota
    /// of the same key, and not by that of a pattern. Keys that a [`shared`](Quota::shared) quota covers use
    /// its buckets from then on.
    ///
    /// # Errors
    /// [`BuildError::EmptyKey`] for an empty name, [`BuildError::MissingFeature`] for a regular expression
    /// without the feature `regex`, and [`BuildError::TotalWithBackend`] for a limit that never resets if the
    /// limiter has a backend; nothing has changed then.
    pub fn set(&self, name: &str, quota: &Quota) -> Result<(), BuildError> {
        self.put(name, quota, QuotaOrigin::Set)
    }

    /// Sets the quota of all keys that a regular expression matches in full; see
    /// [`Builder::quota_regex`](super::Builder::quota_regex). Needs the feature `regex`.
    ///
    /// # Errors
    /// [`BuildError::TotalWithBackend`], as [`set`](Self::set).
    #[cfg(feature = "regex")]
    pub fn set_regex(&self, regex: &Regex, quota: &Quota) -> Result<(), BuildError> {
        self.put(&regex_name(regex), quota, QuotaOrigin::Set)
    }

    /// Checks whether [`set`](Self::set) would accept a quota.
    ///
    /// # Errors
    /// Those of [`set`](Self::set).
    pub(crate) fn check(&self, name: &str, quota: &Quota) -> Result<(), BuildError> {
        check_quota(name, quota, self.0.core.is_local())
    }

    /// Does what [`seam::configure`](crate::seam::configure) says.
    pub(crate) fn configure(&self, name: &str, quota: &Quota) -> Result<(), BuildError> {
        self.put(name, quota, QuotaOrigin::Configured)
    }

    /// Removes the quota of this name: a key, a glob or `regex:PATTERN`. Returns `false` if there was
    /// none.
    ///
    /// A key that no other quota covers is unknown from then on, which by default means not limited.
    /// Requests that wait for such a key fail with
    /// [`AcquireError::Removed`](super::AcquireError::Removed).
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.0.core.change_quotas(|quotas| quotas.remove(name));
        if removed {
            self.0.replan(name, &self.of(name));
        }
        removed
    }

    /// Sets the limits that a provider states for models of an account, instead of its default quotas and of
    /// learned ones. Models that share limits share their buckets. Models that a quota of yours covers keep it,
    /// and models whose limits an earlier call set and this one doesn't name lose theirs. Returns the number of
    /// models whose limits changed.
    ///
    /// ```
    /// use paceline_limiter::limiter::{LimitRules, ModelLimits};
    /// use paceline_limiter::{Limiter, Quota, quota::Algorithm};
    /// # #[derive(Debug, Clone, Copy)]
    /// # struct Anthropic;
    /// # impl LimitRules for Anthropic {
    /// #     fn name(&self) -> &'static str { "anthropic" }
    /// #     fn algorithm(&self) -> Algorithm { Algorithm::TokenBucket }
    /// # }
    ///
    /// let limiter = Limiter::builder().provider(Anthropic).build()?;
    /// let models = ["claude-opus-4-6", "claude-opus-4-7"];
    /// let limits = [ModelLimits::new(models, Quota::new().rpm(4_000))];
    /// assert_eq!(limiter.quotas().follow_provider(Anthropic, &limits), 2);
    /// assert_eq!(limiter.quotas().follow_provider(Anthropic, &limits), 0);
    /// limiter.try_acquire("claude-opus-4-6", &Default::default())?;
    /// assert_eq!(limiter.stats("claude-opus-4-7").limits[0].used, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn follow_provider(&self, provider: impl LimitRules, limits: &[ModelLimits]) -> usize {
        let (core, provider) = (&self.0.core, Provider::new(provider));
        let follow = |quotas: &mut QuotaRegistry| {
            quotas.follow_provider(&provider, limits, core.next_version())
        };
        let changed = core.change_quotas(follow);
        if changed > 0 {
            self.0.replan_all();
        }
        changed
    }

    /// Adds the rules of a provider after those already loaded: keys that its default quotas cover and
    /// that had no quota are limited immediately.
    ///
    /// # Errors
    /// [`UnknownZone`] if a default quota uses a time zone that isn't known, as without the feature
    /// `zones`. The provider isn't added then.
    pub fn add_provider(&self, provider: impl LimitRules) -> Result<(), UnknownZone> {
        let (core, provider) = (&self.0.core, Provider::new(provider));
        core.change_quotas(|quotas| quotas.add_provider(provider, core.next_version()))?;
        self.0.replan_all();
        Ok(())
    }

    /// Sets the policy for keys that no quota covers, including those already in use.
    ///
    /// Requests that wait for a key that is no longer limited fail with
    /// [`AcquireError::Removed`](super::AcquireError::Removed), as if its quota had been removed.
    ///
    /// # Errors
    /// Returns [`BuildError::TotalWithBackend`] for a limit that never resets if the limiter has a backend.
    pub fn set_unknown_key(&self, policy: UnknownKey) -> Result<(), BuildError> {
        if let UnknownKey::Quota(quota) = &policy {
            check_quota("unknown_key", quota, self.0.core.is_local())?;
        }
        let version = self.0.core.next_version();
        self.0.core.change_quotas(|quotas| quotas.set_unknown(policy, version));
        self.0.replan_all();
        Ok(())
    }

    /// Sets the order in which waiting requests get their turns. Requests that wait already keep theirs.
    pub fn set_wait_policy(&self, policy: &WaitPolicy) {
        self.0.core.set_wait_policy(policy);
    }

    /// Sets the number of requests that may wait for one key. Requests that already wait stay queued.
    pub fn set_max_waiting(&self, requests: usize) {
        self.0.core.max_waiting.store(requests, Ordering::Relaxed);
    }

    /// Returns all quotas that were configured, set or learned, sorted by name, without the default
    /// quotas of providers.
    pub fn list(&self) -> Vec<NamedQuota> {
        self.0.core.quotas.read().list()
    }

    /// Returns the quota of [`list`](Self::list) with exactly this name: a key, a glob, or `regex:` and
    /// a regular expression.
    pub fn get(&self, name: &str) -> Option<NamedQuota> {
        self.0.core.quotas.read().of_name(name)
    }

    /// Returns the number of quotas in [`list`](Self::list).
    pub fn len(&self) -> usize {
        self.0.core.quotas.read().len()
    }

    /// Returns `true` if [`list`](Self::list) is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a counter that increases whenever a quota is set, learned or removed.
    pub(crate) fn version(&self) -> u64 {
        self.0.core.quotas.read().changes
    }

    /// Does what [`seam::restore_quotas`](crate::seam::restore_quotas) says.
    pub(crate) fn restore(&self, stored: &[NamedQuota]) {
        for stored in stored.iter().filter(|stored| stored.origin != QuotaOrigin::Configured) {
            let version = self.0.core.next_version();
            let restored = self.0.core.change_quotas(|quotas| quotas.restore(stored, version));
            if restored {
                self.0.replan(&stored.name, &stored.quota);
            }
        }
    }

    /// Returns the name of the quota that applies to a key: the key itself, or the pattern that it
    /// matches. Returns `None` if no quota applies. There are as many names as quotas, independent of
    /// the number of keys.
    ///
    /// ```
    /// use paceline_limiter::{Limiter, Quota};
    /// let limiter = Limiter::builder().quota("tenant:*", Quota::new().rpm(10)).build()?;
    /// assert_eq!(limiter.quotas().name_of("tenant:7").as_deref(), Some("tenant:*"));
    /// assert_eq!(limiter.quotas().name_of("gpt-4o"), None);
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    pub fn name_of(&self, key: &str) -> Option<Key> {
        self.0.core.quotas.read().name_of(key).cloned()
    }

    /// Returns the current quota of a key, with the share of the limiter applied. A reduction after a
    /// refusal doesn't change it.
    pub fn of(&self, key: &str) -> Quota {
        let quota = |_: &_, state: &KeyState| state.full_plan().quota();
        self.0.table.peek(key, quota).unwrap_or_default()
    }

    /// Returns the rules of the provider by which a model counts: the first whose default quotas cover the model, else
    /// the first; `None` if the limiter has no provider.
    /// `Profile::of_rules` of `paceline` returns the profile.
    pub fn rules_of(&self, key: &str) -> Option<Arc<dyn LimitRules>> {
        self.0.core.quotas.read().provider(key).map(|provider| Arc::clone(provider.rules()))
    }

    /// Returns the name of a model in the quota that covers it, if the quota has another of its names.
    pub(crate) fn spelling_of(
        &self,
        model: &str,
        names: impl FnOnce() -> Vec<String>,
        spellings: impl FnOnce() -> Vec<String>,
    ) -> Option<Key> {
        self.0.core.quotas.read().spelling_of(model, names, spellings)
    }

    fn put(&self, name: &str, quota: &Quota, origin: QuotaOrigin) -> Result<(), BuildError> {
        let core = &self.0.core;
        self.check(name, quota)?;
        core.change_quotas(|quotas| quotas.set(name, quota, origin, core.next_version()));
        self.0.replan(name, quota);
        Ok(())
    }
}

/// Checks that a quota of this name can apply to a key, whose buckets are in this process if `is_local`.
pub(super) fn check_quota(name: &str, quota: &Quota, is_local: bool) -> Result<(), BuildError> {
    if name.is_empty() {
        return Err(BuildError::EmptyKey);
    }
    if !is_local && quota.has_total() {
        return Err(BuildError::TotalWithBackend { name: name.to_owned() });
    }
    Ok(MissingFeature::of_quota(name)?)
}
