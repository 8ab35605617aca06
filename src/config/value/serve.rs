use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderName;
use regex::Regex;

use crate::config::{Address, ServeMode};
use crate::provider::Profile;

/// What `tollgate serve` does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Serve {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Limits of the rate-limit service; all that match a key are merged, in order.
    pub keys: Vec<KeyLimit>,
    /// Providers that are proxied, by the first segment of the path.
    pub upstreams: Vec<Upstream>,
    /// What a proxied request is charged to, all or none.
    pub scopes: Vec<Scope>,
    /// What happens to a proxied request that doesn't fit now.
    pub mode: ServeMode,
}

/// Limits of the rate-limit service for the keys of a pattern; `None` leaves it to those before.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KeyLimit {
    /// The pattern, as it was written.
    pub pattern: String,
    /// What a whole key must match, where the pattern is a regular expression.
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
    pub base_url: Address,
    /// Whose rules count.
    pub profile: Profile,
}

/// What a proxied request is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The model that it names.
    Model,
    /// The prefix and a header's value.
    Header {
        /// The header.
        name: HeaderName,
        /// What stands before its value.
        prefix: String,
    },
}
