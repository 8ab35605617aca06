//! What a configuration file says, as it says it: every field with its description, of which the
//! schema is made too. What single values allow is checked here; what they mean together in `Check`.

mod address;
mod bus;
mod cluster;
mod limit;
mod margin;
mod ordered;
mod provider;
mod quota;
mod reduction;
mod retry;
mod span;
mod store;
mod text_or_map;
mod unknown_key;
mod waiting;
mod window;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use address::Address;
pub use cluster::{Mode, OnFailure};
pub use ordered::Ordered;
pub use span::{Span, length_of_time};
pub use text_or_map::TextOrMap;

pub(super) use bus::BusFields;
pub(super) use cluster::ClusterFields;
pub(super) use limit::LimitFields;
pub(super) use margin::MarginFields;
pub(super) use provider::{ProviderFields, ProviderName};
pub(super) use quota::QuotaFields;
pub(super) use reduction::ReductionFields;
pub(super) use retry::RetryFields;
pub(super) use store::StoreFields;
pub(super) use unknown_key::UnknownKeyName;
pub(super) use waiting::WaitingFields;
pub(super) use window::WindowText;

/// The configuration of tollgate. Every section may be left out.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "tollgate configuration", inline)]
pub(super) struct Fields {
    /// The providers that are called: names of built-in profiles, or custom ones. The first counts
    /// for keys that none names.
    #[schemars(extend("examples" = [["openai", "anthropic"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) providers: Option<Vec<TextOrMap<ProviderName, ProviderFields>>>,

    /// Limits by key: a model's name, a glob (`claude-*`), or with `regex: true` a regular
    /// expression. An exact name counts before a glob, a more specific glob before another, and both
    /// before regular expressions, which are tried in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quotas: Option<Ordered<QuotaFields>>,

    /// What happens to a key without a quota: `allow` (default), `refuse`, `learn` its limits from
    /// the headers of responses, or a quota that each such key gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown_key: Option<TextOrMap<UnknownKeyName, QuotaFields>>,

    /// Who may wait for capacity, and how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<WaitingFields>,

    /// How far a key is reduced when its provider refuses a request, and how it recovers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reduction: Option<ReductionFields>,

    /// Whether requests that fail in passing are sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry: Option<RetryFields>,

    /// What is given up because requests reach the provider later than they were admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) margin: Option<MarginFields>,

    /// The share of every limit that is used, so that others on the same account keep the rest:
    /// above 0, at most 1 (default).
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1), example = 0.8)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) share: Option<f64>,

    /// Where state is kept across restarts: a SQLite database, or a YAML file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<StoreFields>,

    /// Over which bus capacity updates are announced: NATS, or Redis/Valkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bus: Option<BusFields>,

    /// Limits that are shared by many machines, over Redis/Valkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<ClusterFields>,
}

impl Fields {
    /// The names of the sections.
    pub(super) const SECTIONS: [&str; 11] = [
        "providers",
        "quotas",
        "unknown_key",
        "waiting",
        "reduction",
        "retry",
        "margin",
        "share",
        "store",
        "bus",
        "cluster",
    ];

    /// The same with the defaults of what isn't said.
    pub(super) fn effective(mut self) -> Self {
        let allow = || TextOrMap::Text(UnknownKeyName::Allow);
        self.unknown_key.get_or_insert_with(allow);
        self.waiting.get_or_insert_default();
        self.reduction.get_or_insert_default();
        self.retry.get_or_insert_default();
        self.margin.get_or_insert_default();
        self.share.get_or_insert(1.0);
        self
    }
}
