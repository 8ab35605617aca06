use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::HeaderName;
use regex::Regex;

use super::fields::{LogFormat, LogLevel, ServeMode, UnreadRequests};
use tollgate::config::SecretUrl;
use tollgate::provider::Profile;
use tollgate::quota::Algorithm;

/// What `tollgate serve` does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Serve {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether anybody may ask from another machine, without a token.
    pub allow_anonymous: bool,
    /// Reverse proxies: requests that they forward count as their own.
    pub trusted_proxies: Vec<IpAddr>,
    /// How many requests per window a key of the rate-limit service has, unless a quota or `keys` says.
    pub max_requests: u32,
    /// How many requests may wait for such a key.
    pub max_requests_in_queue: u32,
    /// The length of its window.
    pub window: Duration,
    /// How it is counted.
    pub algorithm: Algorithm,
    /// Whether a request may say by how many requests per window it is judged.
    pub requests_can_set_rate: bool,
    /// Whether a request may say behind how many it is willing to wait.
    pub requests_can_mod_queue: bool,
    /// Limits of the rate-limit service; all that match a key are merged, in order.
    pub keys: Vec<KeyLimit>,
    /// Providers that are proxied, by the first segment of the path.
    pub upstreams: Vec<Upstream>,
    /// What a proxied request is charged to, all or none.
    pub scopes: Vec<Scope>,
    /// What happens to a proxied request that doesn't fit now.
    pub mode: ServeMode,
    /// What happens to a proxied request that can't be read for certain.
    pub unread: UnreadRequests,
    /// For how long a reservation is held that nobody settles, releases or renews.
    pub reservation_ttl: Duration,
    /// For how long requests may still be answered once the server is asked to stop.
    pub drain: Duration,
    /// What the server takes at most.
    pub bounds: Bounds,
    /// What it logs.
    pub log: Log,
}

/// What a server takes at most; more is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of the bodies of proxied requests that are held at a time.
    pub buffered: usize,
    /// Bytes of a request's head.
    pub head: usize,
    /// Bytes of a key.
    pub key: usize,
    /// Keys that are kept, by whichever way they came; those that a quota names exactly always are.
    pub keys: usize,
    /// Keys that requests to `/rate` may add.
    pub rate_keys: usize,
    /// Keys that requests to `/v1` may add.
    pub api_keys: usize,
    /// Keys that proxied requests may add.
    pub proxy_keys: usize,
    /// Requests that wait, whatever for.
    pub waiting: usize,
    /// Reservations that are open.
    pub reservations: usize,
    /// For how long a client may send the head of a request, or ask for nothing; up to half as long again,
    /// as connections are looked at four times in it.
    pub head_timeout: Duration,
    /// For how long a client may send the body of a request, or take nothing of an answer.
    pub body_timeout: Duration,
    /// For how long an upstream may take until the head of its answer.
    pub upstream_timeout: Duration,
    /// For how long a connection to an upstream is kept that no request uses.
    pub upstream_idle: Duration,
}

/// What a server logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// How lines are written.
    pub format: LogFormat,
    /// From which level on.
    pub level: LogLevel,
    /// Whether answers that are a success are logged.
    pub log2xx: bool,
    /// Whether answers that say the client is wrong or over its limit are logged.
    pub log4xx: bool,
    /// Whether answers that say the server has failed are logged.
    pub log5xx: bool,
}

/// Limits of the rate-limit service for the keys of a pattern; `None` leaves it to those before.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyLimit {
    /// The pattern, as it was written.
    pub pattern: String,
    /// What is found anywhere in a key, where the pattern is a regular expression.
    pub regex: Option<Regex>,
    /// How many requests are let in per window.
    pub max_requests_per_window: Option<u32>,
    /// How many requests may wait.
    pub max_requests_in_queue: Option<u32>,
    /// The length of a window.
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

/// A provider that is proxied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upstream {
    /// The first segment of the path.
    pub name: String,
    /// Where requests go.
    pub base_url: SecretUrl,
    /// Whose rules count.
    pub profile: Profile,
}

/// What a proxied request is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The model that it names.
    Model,
    /// Its API key, of which only a hash is kept.
    ApiKey,
    /// A key of all requests.
    Key(String),
    /// The prefix and a header's value.
    Header {
        /// The header.
        name: HeaderName,
        /// What stands before its value.
        prefix: String,
    },
}
