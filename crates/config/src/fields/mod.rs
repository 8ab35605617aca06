//! The fields of a configuration file. Their doc comments become descriptions in the schema. Single values
//! are checked here, combinations of values in `Check`.

mod amount;
mod bus;
mod cluster;
mod human_duration;
mod limit;
mod margin;
mod ordered_map;
mod prices;
mod priority;
mod provider;
mod quota;
mod reduction;
mod retry;
mod secret_url;
mod store;
mod text_or_map;
mod tls;
mod unknown_key;
mod wait_bound;
mod waiting;
mod window;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use human_duration::{HumanDuration, parse_duration};
pub use ordered_map::OrderedMap;
pub use priority::PriorityText;
pub use secret_url::SecretUrl;
pub use text_or_map::TextOrMap;

pub(super) use amount::Amount;
pub(super) use bus::BusFields;
pub(super) use cluster::ClusterFields;
pub(super) use limit::LimitFields;
pub(super) use margin::MarginFields;
pub(super) use prices::{PriceFields, PricesFields};
pub(super) use provider::{ProviderFields, ProviderName};
pub(super) use quota::{QuotaFields, QuotaMode};
pub(super) use reduction::ReductionFields;
pub(super) use retry::RetryFields;
pub(super) use store::StoreFields;
pub(super) use tls::TlsFields;
pub(super) use unknown_key::UnknownKeyName;
pub(super) use waiting::WaitingFields;
pub(super) use window::WindowText;

/// The configuration of paceline. Every section is optional.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "paceline configuration", inline)]
pub(super) struct Fields {
    /// The providers: names of built-in profiles, or custom ones. The first one applies to keys that
    /// don't name a provider.
    #[schemars(extend("examples" = [["openai", "anthropic"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) providers: Option<Vec<TextOrMap<ProviderName, ProviderFields>>>,

    /// Limits by key: the name of a model, a glob (`claude-*`), or with `regex: true` a regular
    /// expression. An exact name takes precedence over a glob, a more specific glob over another, and
    /// both over regular expressions, which are matched in file order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quotas: Option<OrderedMap<QuotaFields>>,

    /// The policy for keys without a quota: `allow` (default), `refuse`, `learn` (limits from response
    /// headers), or a quota for each such key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown_key: Option<TextOrMap<UnknownKeyName, QuotaFields>>,

    /// The prices of models, by which limits in `usd` count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prices: Option<PricesFields>,

    /// The bounds and the order of queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<WaitingFields>,

    /// The reduction of limits after the provider refuses a request, and their recovery. Without this
    /// section, the provider's limits are measured by its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reduction: Option<ReductionFields>,

    /// Retries of transient failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry: Option<RetryFields>,

    /// Capacity that is left unused because requests reach the provider later than they are admitted. A
    /// quota can have its own margin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) margin: Option<MarginFields>,

    /// The share of every limit that this program uses, so that other users of the account keep the
    /// rest: above 0, at most 1 (default).
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1), example = 0.8)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) share: Option<f64>,

    /// The store that keeps state across restarts: a SQLite database or a YAML file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<StoreFields>,

    /// The bus that announces capacity updates: NATS, or Redis/Valkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bus: Option<BusFields>,

    /// Limits that many machines share through Redis/Valkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<ClusterFields>,
}

impl Fields {
    /// The names of the sections.
    pub(super) const SECTIONS: [&str; 12] = [
        "providers",
        "quotas",
        "unknown_key",
        "prices",
        "waiting",
        "reduction",
        "retry",
        "margin",
        "share",
        "store",
        "bus",
        "cluster",
    ];

    /// Returns the fields with defaults for missing ones.
    pub(super) fn effective(mut self) -> Self {
        let allow = || TextOrMap::Text(UnknownKeyName::Allow);
        self.unknown_key.get_or_insert_with(allow);
        self.waiting.get_or_insert_default();
        self.retry.get_or_insert_default();
        self.margin.get_or_insert_default();
        self.share.get_or_insert(1.0);
        self
    }
}
