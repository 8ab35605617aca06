use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::quota::{Algorithm, Dimension, Quota, SettleAt, UnknownZone};

/// The rules by which a provider counts the requests for its models.
///
/// The profiles of `paceline::provider` implement it, and so can a program for a provider that counts by other rules. The
/// layer of `paceline` reads requests by a profile: set it with `RateLimitLayer::provider` if the rules of a limiter aren't
/// a profile's. Modes and default quotas are read once, and the methods must not use the limiter.
///
/// ```
/// use paceline_limiter::Limiter;
/// use paceline_limiter::limiter::LimitRules;
/// use paceline_limiter::quota::{Algorithm, Quota, UnknownZone};
///
/// #[derive(Debug)]
/// struct Acme;
///
/// impl LimitRules for Acme {
///     fn name(&self) -> &'static str {
///         "acme"
///     }
///
///     fn algorithm(&self) -> Algorithm {
///         Algorithm::TokenBucket
///     }
///
///     fn default_quotas(&self) -> Result<Vec<(&'static str, Quota)>, UnknownZone> {
///         Ok(vec![("acme-large*", Quota::new().rpm(60))])
///     }
/// }
///
/// let limiter = Limiter::builder().provider(Acme).build()?;
/// assert_eq!(limiter.quotas().of("acme-large-2").limits().len(), 1);
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
pub trait LimitRules: Any + fmt::Debug + Send + Sync {
    /// Returns the name, by which a limiter tells providers apart: those of one limiter need different ones.
    fn name(&self) -> &'static str;

    /// Returns the algorithm of limits that don't state one.
    fn algorithm(&self) -> Algorithm;

    /// Returns when the charge in a dimension becomes final. By default requests count when they are sent, and
    /// other dimensions when the request has ended.
    fn settles(&self, dimension: &Dimension) -> SettleAt {
        default_settlement(dimension)
    }

    /// Returns the names of the modes whose requests count to limits of their own, under the key `MODEL:MODE`. None by
    /// default.
    fn modes(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns the quotas that an account has by default, each with the models that it is of: a name or a glob. None by
    /// default.
    ///
    /// # Errors
    /// [`UnknownZone`] if a quota resets in a time zone that isn't known.
    fn default_quotas(&self) -> Result<Vec<(&'static str, Quota)>, UnknownZone> {
        Ok(Vec::new())
    }
}

/// The rules of a provider, shared by the quotas that count by them.
#[derive(Clone)]
pub(crate) struct Provider {
    rules: Arc<dyn LimitRules>,
    modes: Arc<[&'static str]>,
    quotas: Arc<Result<Vec<(&'static str, Quota)>, UnknownZone>>,
}

impl Provider {
    pub(crate) fn new(rules: impl LimitRules) -> Self {
        let (modes, quotas) = (rules.modes().into(), Arc::new(rules.default_quotas()));
        Self { rules: Arc::new(rules), modes, quotas }
    }

    /// Returns the rules.
    pub(crate) fn rules(&self) -> &Arc<dyn LimitRules> {
        &self.rules
    }

    /// Returns the default quotas.
    pub(crate) fn quotas(&self) -> Result<&[(&'static str, Quota)], UnknownZone> {
        self.quotas.as_ref().as_deref().map_err(Clone::clone)
    }

    /// Returns the names of the modes that have limits of their own.
    pub(crate) fn modes(&self) -> impl Iterator<Item = &'static str> {
        self.modes.iter().copied()
    }
}

impl Deref for Provider {
    type Target = dyn LimitRules;

    fn deref(&self) -> &Self::Target {
        &*self.rules
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.name()).finish()
    }
}

/// Returns the time of settlement without a provider: requests count when they are sent, and other
/// dimensions when the request has ended.
pub(super) fn default_settlement(dimension: &Dimension) -> SettleAt {
    match dimension {
        Dimension::Requests => SettleAt::Send,
        _ => SettleAt::End,
    }
}

/// A provider of tests: buckets that refill, and charges that are final when a request is sent.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct ChargedAtSend;

#[cfg(test)]
impl ChargedAtSend {
    pub(crate) fn provider() -> Provider {
        Provider::new(Self)
    }
}

#[cfg(test)]
impl LimitRules for ChargedAtSend {
    fn name(&self) -> &'static str {
        "charged-at-send"
    }

    fn algorithm(&self) -> Algorithm {
        Algorithm::TokenBucket
    }

    fn settles(&self, _: &Dimension) -> SettleAt {
        SettleAt::Send
    }
}
