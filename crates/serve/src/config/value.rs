use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::HeaderName;
use regex::Regex;

use super::fields::{LogFormat, LogLevel, ServeMode, UnreadRequests};
use paceline::provider::Profile;
use paceline::quota::Algorithm;
use paceline_config::SecretUrl;

/// The settings of a server: the section `serve` of the configuration.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Serve {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// True if requests from other machines need no token.
    pub allow_anonymous: bool,
    /// The reverse proxies whose forwarded requests are treated as local.
    pub trusted_proxies: Vec<IpAddr>,
    /// The number of requests per window of a rate-limit service key without a quota and without an entry
    /// in `keys`.
    pub max_requests: u32,
    /// The number of requests that may wait for such a key.
    pub max_requests_in_queue: u32,
    /// The window of such a key.
    pub window: Duration,
    /// The algorithm of such a key.
    pub algorithm: Algorithm,
    /// True if requests may set the number of requests per window.
    pub requests_can_set_rate: bool,
    /// True if requests may set the number of requests that may wait.
    pub requests_can_mod_queue: bool,
    /// Limits of the rate-limit service by key. All entries that match a key are merged in order.
    pub keys: Vec<KeyLimit>,
    /// The proxied providers.
    pub upstreams: Vec<Upstream>,
    /// The keys that a proxied request is charged to, all or none.
    pub scopes: Vec<KeySource>,
    /// The request header with the priority of a request.
    pub priority_header: Option<HeaderName>,
    /// The handling of a proxied request that exceeds a limit.
    pub mode: ServeMode,
    /// The handling of a proxied request whose model cannot be determined.
    pub unread: UnreadRequests,
    /// The time until a reservation expires unless it is settled, released or renewed.
    pub reservation_ttl: Duration,
    /// The time for open requests to complete when the server shuts down.
    pub drain: Duration,
    /// Resource limits of the server.
    pub bounds: Bounds,
    /// Logging.
    pub log: Log,
}

/// Resource limits of a server; requests beyond them are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The number of client connections.
    pub connections: usize,
    /// The size of a request body, in bytes.
    pub body: usize,
    /// The total size of request bodies in memory, in bytes.
    pub buffered: usize,
    /// The number of HTTP/2 requests without a complete response.
    pub streams: usize,
    /// The size of a request head, in bytes.
    pub head: usize,
    /// The length of a key, in bytes.
    pub key: usize,
    /// The number of keys in memory. Keys that a quota or `keys` names exactly do not count.
    pub keys: usize,
    /// The number of keys that requests to `/rate` may add.
    pub rate_keys: usize,
    /// The number of keys that requests to `/v1` may add.
    pub api_keys: usize,
    /// The number of keys that proxied requests may add.
    pub proxy_keys: usize,
    /// The number of waiting requests.
    pub waiting: usize,
    /// The number of open reservations.
    pub reservations: usize,
    /// The time for a client to send a request head, and the idle timeout of connections. Connections are
    /// checked four times within this time, so they may be closed up to half of it later.
    pub head_timeout: Duration,
    /// The time for a client to send a request body, and the longest time without reading any of a
    /// response.
    pub body_timeout: Duration,
    /// The time for an upstream to send response headers.
    pub upstream_timeout: Duration,
    /// The time after which an idle connection to an upstream is closed.
    pub upstream_idle: Duration,
}

/// Logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// The format of log lines.
    pub format: LogFormat,
    /// The lowest logged level.
    pub level: LogLevel,
    /// True if responses with a status below 400 are logged.
    pub log2xx: bool,
    /// True if responses with a 4xx status are logged.
    pub log4xx: bool,
    /// True if responses with a 5xx status are logged.
    pub log5xx: bool,
}

/// Limits of the rate-limit service for keys that match a pattern. `None` keeps the value of earlier
/// matching entries.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyLimit {
    /// The pattern: a key, or the source of the regular expression.
    pub pattern: String,
    /// The regular expression, if the pattern is one; it may match anywhere in a key.
    pub regex: Option<Regex>,
    /// The number of requests per window.
    pub max_requests_per_window: Option<u32>,
    /// The number of requests that may wait.
    pub max_requests_in_queue: Option<u32>,
    /// The window.
    pub window: Option<Duration>,
}

impl PartialEq for KeyLimit {
    fn eq(&self, other: &Self) -> bool {
        let limits = |key: &Self| {
            (
                key.max_requests_per_window,
                key.max_requests_in_queue,
                key.window,
                key.regex.is_some(),
            )
        };
        self.pattern == other.pattern && limits(self) == limits(other)
    }
}

/// A proxied provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upstream {
    /// The first path segment of its requests.
    pub name: String,
    /// The URL that requests are forwarded to.
    pub base_url: SecretUrl,
    /// The provider whose rules apply.
    pub profile: Profile,
    /// The model that the server runs if a request names none.
    pub default_model: Option<String>,
}

/// A key that is derived from a proxied request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeySource {
    /// The model of the request.
    Model,
    /// A hash of the API key of the request.
    ApiKey,
    /// A fixed key for all requests.
    Key(String),
    /// A prefix followed by the value of a header, which isn't forwarded.
    Header {
        /// The name of the header.
        name: HeaderName,
        /// The prefix of the key.
        prefix: String,
        /// The value for requests without the header; without it, they are refused.
        default: Option<String>,
    },
}

impl KeySource {
    /// Returns the start of all keys that requests derive, which is empty for models; `None` for a fixed key.
    pub(crate) fn prefix(&self) -> Option<&str> {
        match self {
            Self::Model => Some(""),
            Self::ApiKey => Some(API_KEY),
            Self::Header { prefix, .. } => Some(prefix),
            Self::Key(_) => None,
        }
    }
}

/// The prefix of the keys of API keys.
pub(crate) const API_KEY: &str = "api_key:";
