use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::limit::is_false;
use super::ordered::Ordered;
use super::text_or_map::TextOrMap;

/// What `tollgate serve` does.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Serve")]
pub(in crate::config) struct ServeFields {
    /// The IP address and port to listen at; port 0 is any that is free. Default: 127.0.0.1:8080.
    #[schemars(extend("examples" = ["127.0.0.1:8080", "[::]:8080"]))]
    pub(in crate::config) listen: String,
    /// Limits of the rate-limit service, by key. All that match a key are merged, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::config) keys: Vec<KeyFields>,
    /// Providers that are proxied, by the first segment of the path: `/openai/v1/...`.
    #[serde(skip_serializing_if = "is_empty")]
    pub(in crate::config) upstreams: Ordered<UpstreamFields>,
    /// What a proxied request is charged to, all or none: its model, and a header. Default: its model.
    pub(in crate::config) scopes: Vec<TextOrMap<ScopeName, HeaderScope>>,
    /// What happens to a proxied request that doesn't fit now. Default: wait.
    pub(in crate::config) mode: ServeMode,
}

/// Limits of the rate-limit service for the keys of a pattern. What is left out is left to the
/// patterns before.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Key")]
pub(in crate::config) struct KeyFields {
    /// A key, or with `key_pattern_is_regex` a regular expression.
    #[schemars(length(min = 1), example = &"user-.*")]
    pub(in crate::config) key_pattern: String,
    /// Whether the pattern is a regular expression, which the whole key must match. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(in crate::config) key_pattern_is_regex: bool,
    /// How many requests are let in per window.
    #[schemars(range(max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) max_requests_per_window: Option<u32>,
    /// How many requests may wait.
    #[schemars(range(max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) max_requests_in_queue: Option<u32>,
    /// The length of a window in milliseconds: from 10 to 3600000.
    #[schemars(range(min = 10, max = 3_600_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::config) window_millis: Option<u32>,
}

/// A provider that is proxied.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Upstream")]
pub(in crate::config) struct UpstreamFields {
    /// Where requests go (http, https): `/NAME/v1/...` goes to `BASE_URL/v1/...`.
    #[schemars(extend("examples" = ["https://api.openai.com"]))]
    pub(in crate::config) base_url: Address,
    /// The provider whose rules count: a built-in one, or one of `providers`.
    #[schemars(length(min = 1), example = &"openai")]
    pub(in crate::config) provider: String,
}

/// What a proxied request is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub(in crate::config) enum ScopeName {
    /// The model that it names.
    Model,
}

/// A key out of a request's header: the prefix and the header's value.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct HeaderScope {
    /// The header's name.
    #[schemars(length(min = 1), example = &"x-tenant")]
    pub(in crate::config) header: String,
    /// What stands before its value in the key. Default: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(example = &"tenant:")]
    pub(in crate::config) prefix: String,
}

/// What happens to a request that doesn't fit now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServeMode {
    /// It waits for its turn.
    #[default]
    Wait,
    /// It is refused, with a time to come back.
    Reject,
}

impl Default for ServeFields {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            keys: Vec::new(),
            upstreams: Ordered::default(),
            scopes: vec![TextOrMap::Text(ScopeName::Model)],
            mode: ServeMode::Wait,
        }
    }
}

fn is_empty(upstreams: &Ordered<UpstreamFields>) -> bool {
    upstreams.0.is_empty()
}
