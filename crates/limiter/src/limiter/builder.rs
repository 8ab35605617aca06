use std::sync::Arc;

#[cfg(feature = "regex")]
use regex::Regex;

use super::core::{AnyClock, Settings};
use super::limiter::Limiter;
use super::outputs::Quantile;
use super::quotas_handle::check_quota;
use super::wait_policy::WaitPolicy;
use crate::answer::error::BuildError;
use crate::backend::Backend;
use crate::clock::{Clock, SystemClock};
use crate::key::adapt::Reduction;
#[cfg(feature = "regex")]
use crate::plan::regex_name;
use crate::plan::{LimitRules, Provider, QuotaOrigin, QuotaRegistry, UnknownKey};
use crate::quota::{Margin, Quota, Share};

/// Builds a [`Limiter`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    providers: Vec<Provider>,
    quotas: Vec<(String, Quota)>,
    unknown: UnknownKey,
    margin: Margin,
    share: Share,
    max_waiting: usize,
    max_keys: usize,
    wait_policy: WaitPolicy,
    quantile: f64,
    reduction: Reduction,
    clock: Option<AnyClock>,
    backend: Option<Arc<dyn Backend>>,
    name_space: Option<&'static str>,
}

impl Limiter {
    /// Returns a builder without quotas, with the system's clock and the default margin.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            providers: Vec::new(),
            quotas: Vec::new(),
            unknown: UnknownKey::Allow,
            margin: Margin::default(),
            share: Share::WHOLE,
            max_waiting: 10_000,
            max_keys: 1_000_000,
            wait_policy: WaitPolicy::new(),
            quantile: 0.9,
            reduction: Reduction::ADAPTIVE,
            clock: None,
            backend: None,
            name_space: None,
        }
    }

    /// Adds the rules of a provider: its algorithm, the time of its charges and its default quotas. A
    /// profile of `paceline` has them.
    ///
    /// They apply to models: keys that the [default quotas](LimitRules::default_quotas) name, and those that the
    /// layer reads from requests. Of several providers, the one whose default quotas name a
    /// model applies to it, or else the one that has read it. Other keys, such as a tenant, an account or a model
    /// that only the caller knows, count as without a provider; give their limits an
    /// [algorithm](Quota::with_algorithm) if they should count by another.
    pub fn provider(mut self, provider: impl LimitRules) -> Self {
        self.providers.push(Provider::new(provider));
        self
    }

    /// Sets the quota of a key, or of each key that a glob (`*`, `?`) matches.
    ///
    /// An exact key takes precedence over a glob, a glob with more literal characters over one with fewer,
    /// and each of them over a provider's default quota.
    pub fn quota(mut self, key: impl Into<String>, quota: Quota) -> Self {
        self.quotas.push((key.into(), quota));
        self
    }

    /// Sets the quota of each key that a regular expression matches in full. Needs the feature `regex`.
    ///
    /// Exact keys and globs take precedence, and so do regular expressions that were set before. Each key
    /// has its own buckets, unless the quota is [`shared`](Quota::shared). The name of the quota is `regex:`
    /// and the pattern, so put options into the pattern (`(?i)`).
    ///
    /// ```
    /// use paceline_limiter::limiter::{Limiter, Regex};
    /// use paceline_limiter::quota::{Cost, Quota};
    /// let users = Regex::new("user-[0-9]+").expect("a valid pattern");
    /// let limiter = Limiter::builder().quota_regex(users, Quota::new().rpm(1)).build()?;
    /// let permit = limiter.try_acquire("user-7", &Cost::new());
    /// assert!(permit.is_ok() && limiter.try_acquire("user-7", &Cost::new()).is_err());
    /// assert!(limiter.try_acquire("user-8", &Cost::new()).is_ok());
    /// assert!(limiter.quotas().of("user-7b").is_unlimited());
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    #[cfg(feature = "regex")]
    #[expect(clippy::needless_pass_by_value, reason = "consistent with `quota`")]
    pub fn quota_regex(self, regex: Regex, quota: Quota) -> Self {
        self.quota(regex_name(&regex), quota)
    }

    /// Sets the policy for keys that no quota covers. By default they are not limited.
    pub fn unknown_key(mut self, policy: UnknownKey) -> Self {
        self.unknown = policy;
        self
    }

    /// Sets the margin of all quotas without their own
    /// ([`Quota::with_margin`](crate::Quota::with_margin)). Default: 2 % and 500 ms. A limiter that protects
    /// its own server needs [`Margin::NONE`].
    pub fn margin(mut self, margin: Margin) -> Self {
        self.margin = margin;
        self
    }

    /// Sets the share of every limit that this limiter uses, so that others on the same account keep the
    /// rest. Default: the whole limit.
    ///
    /// It applies to quotas set here and later, to providers' default quotas and to learned quotas.
    /// [`Quotas::of`](super::Quotas::of) returns limits with the share applied.
    pub fn share(mut self, share: Share) -> Self {
        self.share = share;
        self
    }

    /// Sets the order in which waiting requests get their turns. Default: the order of arrival.
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.wait_policy = policy;
        self
    }

    /// Sets the number of requests that may wait for one key; a further one fails with
    /// [`AcquireError::QueueFull`](super::AcquireError::QueueFull). Default: 10,000.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.max_waiting = requests;
        self
    }

    /// Sets the largest number of keys, at about 200 bytes each. Default: 1,000,000.
    ///
    /// If a new key would exceed it, the limiter drops an idle key: one whose limits are unused, without
    /// permits, waiting requests, handles or gates. If none is found, the new key is refused with
    /// [`Code::TooManyKeys`](super::Code::TooManyKeys), unless a quota names it exactly: such keys are
    /// always accepted. Keys in use are never dropped. A [`KeyBudget`](super::KeyBudget) bounds the keys of
    /// one origin.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// Sets the quantile of a key's recent outputs that
    /// [`Feedback::expected_output`](super::Feedback::expected_output) returns: above 0 and at most 1.
    /// Default: 0.9.
    ///
    /// A higher quantile reserves more than requests use. A lower one causes debt more often, for which
    /// later requests wait.
    pub fn output_quantile(mut self, quantile: f64) -> Self {
        self.quantile = quantile;
        self
    }

    /// Sets the reaction to a provider's refusal of a request. Default: the limiter measures the
    /// provider's limits ([`Reduction::ADAPTIVE`]).
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }

    /// Sets the clock. Default: the system's clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(AnyClock::Other(Arc::new(clock)));
        self
    }

    /// Sets the prefix of keys that have the quota of the name after it, in buckets of their own, unless a quota has a
    /// name with the prefix.
    pub(crate) fn name_space(mut self, prefix: &'static str) -> Self {
        self.name_space = Some(prefix);
        self
    }

    /// Sets a backend that keeps the buckets. By default the limiter keeps them itself.
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Builds the limiter.
    ///
    /// # Errors
    /// [`BuildError`] for an empty key, for a quantile or a reduction out of range, and for settings that
    /// need a Cargo feature that isn't enabled: a quota of a regular expression, or a provider whose
    /// default quotas use a time zone. Also for a limit that never resets in a limiter with a backend.
    pub fn build(self) -> Result<Limiter, BuildError> {
        let mut quotas =
            QuotaRegistry::new(self.providers, &self.unknown, self.margin, self.share)?;
        quotas.name_space = self.name_space;
        let is_local = self.backend.is_none();
        if let UnknownKey::Quota(quota) = &self.unknown {
            check_quota("unknown_key", quota, is_local)?;
        }
        for (key, quota) in &self.quotas {
            check_quota(key, quota, is_local)?;
            quotas.set(key, quota, QuotaOrigin::Configured, 0);
        }
        let clock = self.clock.unwrap_or_else(|| AnyClock::System(SystemClock::new()));
        let settings = Settings {
            max_waiting: self.max_waiting,
            max_keys: self.max_keys,
            quantile: Quantile::new(self.quantile)?,
            reduction: self.reduction.pace()?,
        };
        let limiter = Limiter::new(clock, quotas, &settings, self.backend);
        limiter.quotas().set_wait_policy(&self.wait_policy);
        Ok(limiter)
    }
}
