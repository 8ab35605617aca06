use std::sync::Arc;

use paceline_limiter::limiter::{Reduction, UnknownKey};
use paceline_limiter::quota::{Margin, Share};
use paceline_provider::Profile;
use paceline_provider::account_limits::AccountLimits;
use paceline_provider::price::{PriceList, Prices};

use crate::section::{Section, SectionValues};
use crate::value::{
    BusConfig, ClusterConfig, ConfiguredQuota, RetryConfig, StoreConfig, WaitingConfig,
};

/// A valid configuration. The [module](super) documents the file format.
///
/// ```
/// use paceline_config::Config;
///
/// let config = Config::parse("
/// providers: [openai]
/// quotas:
///   gpt-4o: {rpm: 500, tpm: 30000, rpd: 10000}
/// ")?;
/// let limiter = config.builder().build()?;
/// assert_eq!(limiter.quotas().of("gpt-4o").limits().len(), 3);
///
/// let error = Config::parse("quotas: {gpt-4o: {rmp: 500}}").unwrap_err();
/// assert_eq!(error.to_string().split(';').next(), Some(
///     "config:1:19: quotas.gpt-4o.rmp: unknown field \"rmp\" (did you mean `rpm`?)"
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The providers. The first one applies to keys that don't name a provider.
    pub providers: Vec<Profile>,
    /// The accounts whose limits are read from their providers. `paceline serve` and `paceline batch` do so; a
    /// program spawns [`follow_account_limits`](paceline::middleware) for each.
    pub account_limits: Vec<AccountLimits>,
    /// The quotas, in file order.
    pub quotas: Vec<ConfiguredQuota>,
    /// The policy for keys without a quota.
    pub unknown_key: UnknownKey,
    /// The prices of models, by which limits on spending count in the layers of this configuration
    /// ([`layer`](Self::layer)). Clones of a configuration have the same list. Prices that a program puts into it stay
    /// until a changed configuration states others.
    pub prices: PriceList,
    /// The prices that the configuration states, to find out whether another one states others.
    pub(super) stated_prices: Arc<Prices>,
    /// The bounds and the order of queues.
    pub waiting: WaitingConfig,
    /// The reaction to a provider's refusal of a request. Without a section `reduction` the provider's limits
    /// are measured by its answers.
    pub reduction: Reduction,
    /// Retries of transient failures.
    pub retry: RetryConfig,
    /// The margin of quotas that have none of their own.
    pub margin: Margin,
    /// The share of every limit that this program uses.
    pub share: Share,
    /// The store that keeps state across restarts.
    pub store: Option<StoreConfig>,
    /// The bus that announces capacity updates.
    pub bus: Option<BusConfig>,
    /// Limits that many machines share.
    pub cluster: Option<ClusterConfig>,
    /// The values of registered sections; see [`section`](Self::section).
    pub(super) sections: SectionValues,
}

impl Config {
    /// Returns the value of a section, or its default if the configuration doesn't have the section.
    /// Returns `None` if the section was not [registered](crate::section::Sections) when the configuration
    /// was read.
    pub fn section<S: Section>(&self) -> Option<&S> {
        self.sections.get(S::NAME)?.downcast_ref()
    }
}
