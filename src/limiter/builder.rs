use std::sync::Arc;

#[cfg(feature = "regex")]
use regex::Regex;

use super::core::{AnyClock, Settings};
use super::limiter::Limiter;
use super::outputs::Quantile;
use crate::answer::error::BuildError;
use crate::backend::Backend;
use crate::clock::{Clock, SystemClock};
use crate::key::adapt::Reduction;
#[cfg(feature = "regex")]
use crate::plan::regex_name;
use crate::plan::{MissingFeature, QuotaOrigin, QuotaRegistry, UnknownKey};
use crate::provider::Profile;
use crate::quota::{Margin, Quota, Share};

/// Builds a [`Limiter`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    profiles: Vec<Profile>,
    quotas: Vec<(String, Quota)>,
    unknown: UnknownKey,
    margin: Margin,
    share: Share,
    max_waiting: usize,
    max_keys: usize,
    quantile: f64,
    reduction: Reduction,
    clock: Option<AnyClock>,
    backend: Option<Arc<dyn Backend>>,
}

impl Limiter {
    /// A builder with no quotas, the system's clock and the default margin.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            profiles: Vec::new(),
            quotas: Vec::new(),
            unknown: UnknownKey::Allow,
            margin: Margin::default(),
            share: Share::WHOLE,
            max_waiting: 10_000,
            max_keys: 1_000_000,
            quantile: 0.9,
            reduction: Reduction::new(),
            clock: None,
            backend: None,
        }
    }

    /// Loads a provider's profile: its algorithm, when its charges are final, its default quotas.
    ///
    /// Of several, the one whose default quotas name a key counts for it, else the first.
    pub fn provider(mut self, profile: Profile) -> Self {
        self.profiles.push(profile);
        self
    }

    /// The quota of a key, or of each key that a glob (`*`, `?`) matches. An exact key counts
    /// before a glob, and a glob that names more characters before one that names fewer; each
    /// counts before a provider's default. A key that the provider doesn't name, such as a tenant, is
    /// counted by the first profile's algorithm all the same, unless the quota names one.
    pub fn quota(mut self, key: impl Into<String>, quota: Quota) -> Self {
        self.quotas.push((key.into(), quota));
        self
    }

    /// The quota of each key that a regular expression matches, all of the key from its first
    /// character to its last. It counts after exact keys and globs, and of several the one that came
    /// first. Each key has buckets of its own, unless the quota is [`shared`](Quota::shared). Its name
    /// is `regex:` and the pattern; options belong into the pattern (`(?i)`). Needs the feature `regex`.
    ///
    /// ```
    /// use tollgate::limiter::{Limiter, Regex};
    /// use tollgate::quota::{Cost, Quota};
    /// let users = Regex::new("user-[0-9]+").expect("a pattern");
    /// let limiter = Limiter::builder().quota_regex(users, Quota::new().rpm(1)).build()?;
    /// let permit = limiter.try_acquire("user-7", &Cost::new());
    /// assert!(permit.is_ok() && limiter.try_acquire("user-7", &Cost::new()).is_err());
    /// assert!(limiter.try_acquire("user-8", &Cost::new()).is_ok());
    /// assert!(limiter.quotas().of("user-7b").is_unlimited());
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    #[cfg(feature = "regex")]
    #[expect(clippy::needless_pass_by_value, reason = "as the quota of a key is given")]
    pub fn quota_regex(self, regex: Regex, quota: Quota) -> Self {
        self.quota(regex_name(&regex), quota)
    }

    /// Sets the policy for keys that no quota names. Default: it isn't limited.
    pub fn unknown_key(mut self, policy: UnknownKey) -> Self {
        self.unknown = policy;
        self
    }

    /// Sets the margin of all quotas that have none of their own
    /// ([`Quota::with_margin`](crate::Quota::with_margin)). Default: 2 % and 500 ms; a limiter that
    /// protects its own server needs [`Margin::NONE`].
    pub fn margin(mut self, margin: Margin) -> Self {
        self.margin = margin;
        self
    }

    /// The share of every limit that is used, so that others on the same account keep the rest: of
    /// the quotas given here and later, of the providers' defaults, and of what responses teach.
    /// [`Quotas::of`](super::Quotas::of) returns the share. Default: all.
    pub fn share(mut self, share: Share) -> Self {
        self.share = share;
        self
    }

    /// Sets the number of requests that may wait for one key. Default: 10,000.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.max_waiting = requests;
        self
    }

    /// The number of keys that are kept, at about 200 bytes each. Where one more would be one too many,
    /// an idle key is forgotten for it: one whose limits are unused, without permits, waiting requests,
    /// handles and gates. If there is none at hand, the new key is refused
    /// ([`Code::TooManyKeys`](super::Code::TooManyKeys)), unless a quota names it exactly: such keys
    /// always have a place. Usage is never forgotten. Default: 1,000,000. A
    /// [`KeyBudget`](super::KeyBudget) bounds the keys of one origin.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// The share of a key's recent outputs that
    /// [`Feedback::expected_output`](super::Feedback::expected_output) covers: above 0 and at
    /// most 1. More of it reserves more than is used; less of it runs into debt more often, which the
    /// next requests wait for. Default: 0.9.
    pub fn output_quantile(mut self, quantile: f64) -> Self {
        self.quantile = quantile;
        self
    }

    /// How far a key is reduced when its provider refuses a request, and how it recovers. Default:
    /// to half, and back by a tenth every 30 seconds.
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }

    /// Where time comes from. Default: the system.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(AnyClock::Other(Arc::new(clock)));
        self
    }

    /// Keeps the buckets elsewhere. Default: in this limiter.
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// The limiter.
    ///
    /// # Errors
    /// [`BuildError`] for an empty key, a quantile or a reduction that is
    /// none, and for what needs a feature that this program was built without: a quota of a regular
    /// expression, a provider whose default quotas end their days in a time zone.
    pub fn build(self) -> Result<Limiter, BuildError> {
        let mut quotas =
            QuotaRegistry::new(&self.profiles, &self.unknown, self.margin, self.share)?;
        for (key, quota) in &self.quotas {
            if key.is_empty() {
                return Err(BuildError::EmptyKey);
            }
            MissingFeature::of_quota(key)?;
            quotas.set(key, quota, QuotaOrigin::Configured, 0);
        }
        let clock = self.clock.unwrap_or_else(|| AnyClock::System(SystemClock::new()));
        let settings = Settings {
            max_waiting: self.max_waiting,
            max_keys: self.max_keys,
            quantile: Quantile::new(self.quantile)?,
            reduction: self.reduction.pace()?,
        };
        Ok(Limiter::new(clock, quotas, settings, self.backend))
    }
}
