use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use paceline::quota::Algorithm;
use paceline_config::SecretUrl;
use paceline_config::section::{HumanDuration, OrderedMap, TextOrMap};

/// The section `serve`: the settings of `paceline serve`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Serve")]
pub struct ServeFields {
    /// The IP address and port to listen on; port 0 selects a free port. Default: 127.0.0.1:8080.
    #[schemars(extend("examples" = ["127.0.0.1:8080", "[::]:8080"]))]
    pub(super) listen: String,
    /// Accept requests from other machines without a token. Default: false.
    pub(super) allow_anonymous: bool,
    /// IP addresses of reverse proxies on this machine. A request forwarded by one of them is treated as
    /// a local request if `PACELINE_TOKEN` is set. Any other request with a header such as
    /// `X-Forwarded-For` needs a token. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["127.0.0.1"]]))]
    pub(super) trusted_proxies: Vec<String>,
    /// The number of requests per window of a rate-limit service key without a quota and without an entry
    /// in `keys`: from 1 to 1000000000. Default: 100.
    #[schemars(range(min = 1, max = MAX_REQUESTS))]
    pub(super) max_requests: u32,
    /// The number of requests that may wait for such a key: at most 1000000000. Default: 400.
    #[schemars(range(max = MAX_REQUESTS))]
    pub(super) max_requests_in_queue: u32,
    /// The window of such a key in milliseconds: from 10 to 3600000. Default: 1000.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub(super) window_millis: u32,
    /// The algorithm of such a key: `sliding_window` (default), `fixed_window` (starting at the first
    /// use) or `token_bucket`.
    pub(super) algorithm: Algorithm,
    /// Allow requests to `/rate` to set the number of requests per window (`maxRequests`). Default:
    /// false.
    pub(super) requests_can_set_rate: bool,
    /// Allow requests to `/rate` to set the number of requests that may wait (`maxRequestsInQueue`).
    /// Default: false.
    pub(super) requests_can_mod_queue: bool,
    /// Limits of the rate-limit service by key. All entries that match a key are merged in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<KeyFields>,
    /// The proxied providers by the first path segment: `/openai/v1/...`.
    #[serde(skip_serializing_if = "is_empty")]
    pub(super) upstreams: OrderedMap<UpstreamFields>,
    /// The keys that a proxied request is charged to, all or none: its model, its API key (hashed), the
    /// value of a header, or a fixed key. Default: its model.
    pub(super) scopes: Vec<TextOrMap<ScopeName, ScopeFields>>,
    /// The request header with the priority of a proxied request or of a request to `/rate`:
    /// `interactive`, `normal`, `batch`, or a number. It takes precedence over `waiting.bands` and is not
    /// forwarded. Configure it only if all clients may choose their priority. Default: none is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"x-priority")]
    pub(super) priority_header: Option<String>,
    /// The handling of a proxied request that exceeds a limit. Default: wait.
    pub(super) mode: ServeMode,
    /// The handling of a proxied request whose model cannot be determined. Default: refuse.
    pub(super) unread: UnreadRequests,
    /// The time until a reservation of the JSON API expires unless it is settled, released or renewed:
    /// from 1s to 1h. Default: 1m.
    pub(super) reservation_ttl: HumanDuration,
    /// The time for open requests to complete when the server shuts down: at most 1h. Default: 30s.
    pub(super) drain: HumanDuration,
    /// Resource limits of the server.
    pub(super) bounds: BoundsFields,
    /// Logging.
    pub(super) log: LogFields,
}

/// Resource limits of the server; requests beyond them are refused.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Bounds")]
pub(super) struct BoundsFields {
    /// The number of client connections. Default: 10000.
    #[schemars(range(min = 1))]
    pub(super) connections: u32,
    /// The size of a request body, in bytes. Default: 33554432 (32 MiB).
    pub(super) body: u64,
    /// The total size of request bodies in memory, in bytes, from their arrival until they are forwarded or
    /// answered. A client address can hold half of what the others leave; at least twice `body`. Default:
    /// 268435456 (256 MiB).
    pub(super) buffered: u64,
    /// The number of requests over HTTP/2 without a complete response, over all connections. A client address can
    /// have half of what the others leave. One with a head above 4 KiB counts as several. Default: 20000.
    #[schemars(range(min = 2))]
    pub(super) streams: u32,
    /// The size of a request head, in bytes. Default: 65536.
    #[schemars(range(min = 8192))]
    pub(super) head: u32,
    /// The length of a key, in bytes. Default: 256.
    #[schemars(range(min = 1))]
    pub(super) key: u32,
    /// The number of keys in memory. Keys that a quota or `keys` names exactly do not count. Default:
    /// 1000000.
    #[schemars(range(min = 1))]
    pub(super) keys: u32,
    /// The number of keys that requests to `/rate` may add. Default: half of `keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate_keys: Option<u32>,
    /// The number of keys that requests to `/v1` may add. Default: a quarter of `keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) api_keys: Option<u32>,
    /// The number of keys that proxied requests may add. Default: a quarter of `keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_keys: Option<u32>,
    /// The number of waiting requests. Default: 100000.
    pub(super) waiting: u32,
    /// The number of open reservations of the JSON API. A client address can have half of what the others leave.
    /// Default: 100000.
    pub(super) reservations: u32,
    /// The time for a client to send a request head. Default: 10s.
    pub(super) head_timeout: HumanDuration,
    /// The time for a client to send a request body, and the longest time without reading any of a
    /// response. Default: 30s.
    pub(super) body_timeout: HumanDuration,
    /// The time for an upstream to send response headers. Default: 10m.
    pub(super) upstream_timeout: HumanDuration,
    /// The time after which an idle connection to an upstream is closed; choose less than the upstream's
    /// own timeout. Default: 30s.
    pub(super) upstream_idle: HumanDuration,
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Log")]
pub(super) struct LogFields {
    /// The format of log lines. Default: json.
    pub(super) format: LogFormat,
    /// The lowest logged level. Default: info.
    pub(super) level: LogLevel,
    /// Log responses with a status below 400. Default: false.
    pub(super) log2xx: bool,
    /// Log responses with a 4xx status. Default: false.
    pub(super) log4xx: bool,
    /// Log responses with a 5xx status. Default: true.
    pub(super) log5xx: bool,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    /// Human-readable text.
    Text,
}

/// The lowest level that is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Possible problems.
    Warn,
    /// Errors.
    Error,
}

/// Limits of the rate-limit service for keys that match a pattern. Omitted fields keep the values of
/// earlier matching entries.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Key")]
pub(super) struct KeyFields {
    /// A key, or a regular expression if `key_pattern_is_regex` is true.
    #[schemars(length(min = 1), example = &"user-.*")]
    pub(super) key_pattern: String,
    /// Treat the pattern as a regular expression. As in GoCC, it may match anywhere in the key; anchor it
    /// with `^` and `$`. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) key_pattern_is_regex: bool,
    /// The number of requests per window: at least 1.
    #[schemars(range(min = 1, max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_requests_per_window: Option<u32>,
    /// The number of requests that may wait; 0 disables waiting.
    #[schemars(range(max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_requests_in_queue: Option<u32>,
    /// The window in milliseconds: from 10 to 3600000.
    #[schemars(range(min = 10, max = 3_600_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) window_millis: Option<u32>,
}

/// A proxied provider.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Upstream")]
pub(super) struct UpstreamFields {
    /// The URL that requests are forwarded to (http, https): `/NAME/v1/...` is sent to
    /// `BASE_URL/v1/...`, or to `BASE_URL/...` if that already ends in `/v1` or another version.
    #[schemars(extend("examples" = ["https://api.openai.com"]))]
    pub(super) base_url: SecretUrl,
    /// The provider whose rules apply: a built-in one, or one of `providers`.
    #[schemars(length(min = 1), example = &"openai")]
    pub(super) provider: String,
    /// The model that the server runs if a request names none, as vLLM and llama.cpp do. Default: such a request is
    /// refused, unless the provider documents a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"my-model")]
    pub(super) default_model: Option<String>,
}

/// A key that is derived from a proxied request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub(super) enum ScopeName {
    /// The model of the request.
    Model,
    /// The API key of the request, as a hash: `api_key:HASH`.
    ApiKey,
}

/// A key made of a prefix and the value of a request header, which isn't forwarded, or a fixed key for all requests.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OwnScope")]
pub(super) struct ScopeFields {
    /// The name of the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"x-tenant")]
    pub(super) header: Option<String>,
    /// The prefix of the key, before the header's value. Default: empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(example = &"tenant:")]
    pub(super) prefix: String,
    /// The value for requests without the header. Default: they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"nobody")]
    pub(super) default: Option<String>,
    /// A fixed key for all proxied requests, such as an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"account")]
    pub(super) key: Option<String>,
}

/// The handling of a request that exceeds a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServeMode {
    /// The request waits until it fits.
    #[default]
    Wait,
    /// The request is refused, with the time to retry.
    Reject,
}

/// The handling of a proxied request whose model cannot be determined: its body is neither JSON nor a
/// form, it names two models or none, or its encoding is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnreadRequests {
    /// The request is refused with the reason.
    #[default]
    Refuse,
    /// The request is forwarded, and charged by its readable parts and its size.
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
            priority_header: None,
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
            streams: 20_000,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_empty(upstreams: &OrderedMap<UpstreamFields>) -> bool {
    upstreams.0.is_empty()
}

/// The maximum of GoCC.
pub(super) const MAX_REQUESTS: u32 = 1_000_000_000;
