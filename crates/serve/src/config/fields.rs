use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tollgate::config::SecretUrl;
use tollgate::config::section::{HumanDuration, OrderedMap, TextOrMap};
use tollgate::quota::Algorithm;

/// What `tollgate serve` does.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Serve")]
pub struct ServeFields {
    /// The IP address and port to listen at; port 0 is any that is free. Default: 127.0.0.1:8080.
    #[schemars(extend("examples" = ["127.0.0.1:8080", "[::]:8080"]))]
    pub(super) listen: String,
    /// Whether anybody may ask who reaches an address other than this machine's own, without a token.
    /// Default: false.
    pub(super) allow_anonymous: bool,
    /// IP addresses of reverse proxies on this machine: a request that one of them forwards counts as
    /// a request of this machine, once `TOLLGATE_TOKEN` is set. Any other request with a header such as
    /// `X-Forwarded-For` needs a token. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["127.0.0.1"]]))]
    pub(super) trusted_proxies: Vec<String>,
    /// How many requests per window a key of the rate-limit service has that no quota names and for
    /// which `keys` says nothing: from 1 to 1000000000. Default: 100.
    #[schemars(range(min = 1, max = MOST_REQUESTS))]
    pub(super) max_requests: u32,
    /// How many requests may wait for such a key: at most 1000000000. Default: 400.
    #[schemars(range(max = MOST_REQUESTS))]
    pub(super) max_requests_in_queue: u32,
    /// The length of its window in milliseconds: from 10 to 3600000. Default: 1000.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub(super) window_millis: u32,
    /// How such keys are counted: `sliding_window` (default), `fixed_window` (from the first use),
    /// `token_bucket`.
    pub(super) algorithm: Algorithm,
    /// Whether a request to `/rate` may say by how many requests per window it is judged
    /// (`maxRequests`). Default: false.
    pub(super) requests_can_set_rate: bool,
    /// Whether it may say behind how many it is willing to wait (`maxRequestsInQueue`). Default: false.
    pub(super) requests_can_mod_queue: bool,
    /// Limits of the rate-limit service, by key. All that match a key are merged, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<KeyFields>,
    /// Providers that are proxied, by the first segment of the path: `/openai/v1/...`.
    #[serde(skip_serializing_if = "is_empty")]
    pub(super) upstreams: OrderedMap<UpstreamFields>,
    /// What a proxied request is charged to, all or none: its model, its API key (hashed), the value of
    /// a header, a key of its own. Default: its model.
    pub(super) scopes: Vec<TextOrMap<ScopeName, ScopeFields>>,
    /// What happens to a proxied request that doesn't fit now. Default: wait.
    pub(super) mode: ServeMode,
    /// What happens to a proxied request of which the model can't be read for certain. Default: refuse.
    pub(super) unread: UnreadRequests,
    /// For how long a reservation of the JSON API is held that nobody settles, releases or renews: from
    /// 1s to 1h. Default: 1m.
    pub(super) reservation_ttl: HumanDuration,
    /// For how long requests may still be answered once the server is asked to stop: at most 1h.
    /// Default: 30s.
    pub(super) drain: HumanDuration,
    /// What the server takes at most.
    pub(super) bounds: BoundsFields,
    /// What it logs.
    pub(super) log: LogFields,
}

/// What a server takes at most; more is refused.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Bounds")]
pub(super) struct BoundsFields {
    /// Connections at a time. Default: 10000.
    #[schemars(range(min = 1))]
    pub(super) connections: u32,
    /// Bytes of a request's body. Default: 33554432 (32 MiB).
    pub(super) body: u64,
    /// Bytes of the bodies of proxied requests that are held at a time, from when they come until they
    /// are sent whole; at least `body`. Default: 268435456 (256 MiB).
    pub(super) buffered: u64,
    /// Bytes of a request's head. Default: 65536.
    #[schemars(range(min = 8192))]
    pub(super) head: u32,
    /// Bytes of a key. Default: 256.
    #[schemars(range(min = 1))]
    pub(super) key: u32,
    /// Keys that are kept, by whichever way they came. A key that a quota or `keys` names exactly
    /// always has a place. Default: 1000000.
    #[schemars(range(min = 1))]
    pub(super) keys: u32,
    /// How many of them requests to `/rate` may add. Default: half of `keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate_keys: Option<u32>,
    /// How many of them requests to `/v1` may add. Default: a quarter of `keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_keys: Option<u32>,
    /// How many of them proxied requests may add. Default: a quarter of `keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_keys: Option<u32>,
    /// Requests that wait, whatever for. Default: 100000.
    pub(super) waiting: u32,
    /// Reservations of the JSON API that are open. Default: 100000.
    pub(super) reservations: u32,
    /// For how long a client may send the head of a request. Default: 10s.
    pub(super) head_timeout: HumanDuration,
    /// For how long a client may send the body of a request, and for how long it may take nothing of an
    /// answer. Default: 30s.
    pub(super) body_timeout: HumanDuration,
    /// For how long an upstream may take until the head of its answer. Default: 10m.
    pub(super) upstream_timeout: HumanDuration,
    /// For how long a connection to an upstream is kept that no request uses: less than the upstream
    /// keeps it. Default: 30s.
    pub(super) upstream_idle: HumanDuration,
}

/// What a server logs.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Log")]
pub(super) struct LogFields {
    /// How lines are written. Default: json.
    pub(super) format: LogFormat,
    /// From which level on. Default: info.
    pub(super) level: LogLevel,
    /// Whether answers that are a success are logged. Default: false.
    pub(super) log2xx: bool,
    /// Whether answers that say the client is wrong or over its limit are logged. Default: false.
    pub(super) log4xx: bool,
    /// Whether answers that say the server has failed are logged. Default: true.
    pub(super) log5xx: bool,
}

/// How lines of a log are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// A JSON object a line.
    #[default]
    Json,
    /// Text for people.
    Text,
}

/// From which level on lines are logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What only who works on it wants to know.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
}

/// Limits of the rate-limit service for the keys of a pattern. What is left out is left to the
/// patterns before.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Key")]
pub(super) struct KeyFields {
    /// A key, or with `key_pattern_is_regex` a regular expression.
    #[schemars(length(min = 1), example = &"user-.*")]
    pub(super) key_pattern: String,
    /// Whether the pattern is a regular expression, found anywhere in the key, as GoCC has it: `^` and
    /// `$` bind it to the ends. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) key_pattern_is_regex: bool,
    /// How many requests are let in per window: at least 1.
    #[schemars(range(min = 1, max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_requests_per_window: Option<u32>,
    /// How many requests may wait; none, if 0.
    #[schemars(range(max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_requests_in_queue: Option<u32>,
    /// The length of a window in milliseconds: from 10 to 3600000.
    #[schemars(range(min = 10, max = 3_600_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) window_millis: Option<u32>,
}

/// A provider that is proxied.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Upstream")]
pub(super) struct UpstreamFields {
    /// Where requests go (http, https): `/NAME/v1/...` goes to `BASE_URL/v1/...`, or to
    /// `BASE_URL/...` where that ends in `/v1` (or another version) already.
    #[schemars(extend("examples" = ["https://api.openai.com"]))]
    pub(super) base_url: SecretUrl,
    /// The provider whose rules count: a built-in one, or one of `providers`.
    #[schemars(length(min = 1), example = &"openai")]
    pub(super) provider: String,
}

/// What a proxied request is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub(super) enum ScopeName {
    /// The model that it names.
    Model,
    /// Its API key, of which only a hash is kept: `api_key:HASH`.
    ApiKey,
}

/// A key out of a request's header (the prefix and its value), or one that all requests share.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OwnScope")]
pub(super) struct ScopeFields {
    /// The header's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"x-tenant")]
    pub(super) header: Option<String>,
    /// What stands before its value in the key. Default: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(example = &"tenant:")]
    pub(super) prefix: String,
    /// A key of all proxied requests: an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"account")]
    pub(super) key: Option<String>,
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

/// What happens to a proxied request that can't be read for certain: its body is no JSON and no form, it
/// names two models, or its encoding is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnreadRequests {
    /// It is refused, with the reason.
    #[default]
    Refuse,
    /// It is charged by what could be read of it and by its size.
    Allow,
}

impl Default for ServeFields {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            allow_anonymous: false,
            trusted_proxies: Vec::new(),
            max_requests: 100,
            max_requests_in_queue: 400,
            window_millis: 1000,
            algorithm: Algorithm::SlidingWindow,
            requests_can_set_rate: false,
            requests_can_mod_queue: false,
            keys: Vec::new(),
            upstreams: OrderedMap::default(),
            scopes: vec![TextOrMap::Text(ScopeName::Model)],
            mode: ServeMode::Wait,
            unread: UnreadRequests::Refuse,
            reservation_ttl: HumanDuration(Duration::from_secs(60)),
            drain: HumanDuration(Duration::from_secs(30)),
            bounds: BoundsFields::default(),
            log: LogFields::default(),
        }
    }
}

impl Default for BoundsFields {
    fn default() -> Self {
        Self {
            connections: 10_000,
            body: 32 << 20,
            buffered: 256 << 20,
            head: 64 << 10,
            key: 256,
            keys: 1_000_000,
            rate_keys: None,
            api_keys: None,
            proxy_keys: None,
            waiting: 100_000,
            reservations: 100_000,
            head_timeout: HumanDuration(Duration::from_secs(10)),
            body_timeout: HumanDuration(Duration::from_secs(30)),
            upstream_timeout: HumanDuration(Duration::from_secs(600)),
            upstream_idle: HumanDuration(Duration::from_secs(30)),
        }
    }
}

impl Default for LogFields {
    fn default() -> Self {
        Self {
            format: LogFormat::Json,
            level: LogLevel::Info,
            log2xx: false,
            log4xx: false,
            log5xx: true,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_empty(upstreams: &OrderedMap<UpstreamFields>) -> bool {
    upstreams.0.is_empty()
}

/// The bound of GoCC.
pub(super) const MOST_REQUESTS: u32 = 1_000_000_000;
