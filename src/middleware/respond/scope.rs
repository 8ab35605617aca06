use std::fmt;
use std::sync::Arc;

use crate::quota::Key;
use axum::extract::MatchedPath;
use compact_str::CompactString;
use http::HeaderName;
use paceline_limiter::seam;
use sha2::{Digest, Sha256};

use super::head::Head;
use super::peer::{self, Proxies};
use crate::middleware::ScopeKey;

/// The source of a request's key.
///
/// The key consists of the scope's name, a colon, and a value of the request: `peer:203.0.113.7`,
/// `x-tenant:acme`. A quota for `peer:*` therefore gives each address a separate limit. All requests
/// without a value share the key of the name and the colon, such as `x-tenant:`, which the same quota
/// covers.
///
/// Keys appear in logs, events, stores and statistics, and in the response to a refused request. A
/// header's value may be a secret, so the key holds the first 128 bits of its SHA-256, in hexadecimal,
/// and responses omit the key; [`plain`](Self::plain) disables hashing. Any other value longer than
/// 128 bytes is hashed too. [`key_of`](Self::key_of) returns the key of a value.
///
/// ```
/// use paceline::middleware::respond::Scope;
/// let by_key = Scope::header(http::HeaderName::from_static("x-api-key"));
/// let by_tenant = Scope::header(http::HeaderName::from_static("x-tenant")).plain().named("tenant");
/// assert_eq!(by_tenant.key_of("acme"), "tenant:acme");
/// assert_eq!(by_key.key_of("sk-1"), "x-api-key:0f2c10bf3d128c719c6bfa4ecbae94b7");
/// ```
#[derive(Clone)]
pub struct Scope {
    name: Key,
    source: Source,
    hashed: bool,
}

#[derive(Clone)]
enum Source {
    /// The name is the whole key.
    Fixed,
    Header(HeaderName),
    Path,
    Route,
    Peer(Option<Proxies>),
    Value(Arc<dyn Fn(Head<'_>) -> Option<Key> + Send + Sync>),
}

impl Scope {
    /// Uses the same key for all requests.
    pub fn fixed(key: impl Into<Key>) -> Self {
        Self::new(key, Source::Fixed)
    }

    /// Uses the hash of a header field's value, such as an API key or a token. If the field occurs
    /// several times, the first value counts.
    pub fn header(name: HeaderName) -> Self {
        let text = Key::from(name.as_str());
        Self::new(text, Source::Header(name)).hashed()
    }

    /// Uses the path of the request: `path:/v1/users/42`. Clients can choose any path; prefer
    /// [`route`](Self::route) to bound the number of keys.
    pub fn path() -> Self {
        Self::new("path", Source::Path)
    }

    /// Uses the route that axum matched: `route:/v1/users/{id}`. Requests without a route share the key
    /// `route:`.
    pub fn route() -> Self {
        Self::new("route", Source::Route)
    }

    /// Uses the remote address of the connection: `peer:203.0.113.7`. IPv6 addresses count by /64
    /// network, since a client has at least one: `peer:2001:db8:1:2::/64`.
    ///
    /// Header fields are ignored. The address comes from axum's `ConnectInfo<SocketAddr>`: serve with
    /// `into_make_service_with_connect_info::<SocketAddr>()`. Without it all requests share the key
    /// `peer:`, and a warning is logged once.
    pub fn peer() -> Self {
        Self::new("peer", Source::Peer(None))
    }

    /// Uses the remote address behind trusted proxies: the nearest address that isn't one of `proxies`.
    pub fn peer_behind(proxies: Proxies) -> Self {
        Self::new("peer", Source::Peer(Some(proxies)))
    }

    /// Uses the result of `value` for a request extension that an outer layer has set, such as the
    /// authenticated user. The result is not hashed.
    pub fn extension<T, V>(
        name: impl Into<Key>,
        value: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Self
    where
        T: Clone + Send + Sync + 'static,
        V: Into<Key>,
    {
        Self::by(name, move |head| Some(value(head.extensions.get::<T>()?).into()))
    }

    /// Uses the result of `value` for the request. The result is not hashed.
    pub fn by<V: Into<Key>>(
        name: impl Into<Key>,
        value: impl Fn(Head<'_>) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Source::Value(Arc::new(move |head| value(head).map(Into::into))))
    }

    /// Sets the name, which is the part of the key before the colon.
    #[must_use]
    pub fn named(mut self, name: impl Into<Key>) -> Self {
        self.name = name.into();
        self
    }

    /// Uses the value without hashing, and includes the key in responses. For values that aren't
    /// secret.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.hashed = false;
        self
    }

    /// Uses the hash of the value, and omits the key from responses.
    #[must_use]
    pub fn hashed(mut self) -> Self {
        self.hashed = true;
        self
    }

    /// Returns the key of requests with this value, for setting a quota or reading statistics.
    pub fn key_of(&self, value: &str) -> Key {
        let mut key = self.empty();
        self.push(&mut key, value.as_bytes());
        seam::key_of(key)
    }

    /// Returns the key of a request.
    pub(super) fn key(&self, head: Head<'_>) -> ScopeKey {
        if let Source::Fixed = self.source {
            return ScopeKey::public(self.name.clone());
        }
        let mut key = self.empty();
        match &self.source {
            Source::Fixed => {}
            Source::Header(name) => {
                let value = head.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
                self.push(&mut key, value);
            }
            Source::Path => self.push(&mut key, head.uri.path().as_bytes()),
            Source::Route => {
                let route = head.extensions.get::<MatchedPath>();
                self.push(&mut key, route.map_or("", MatchedPath::as_str).as_bytes());
            }
            Source::Peer(proxies) => {
                let address = peer::address(head, proxies.as_ref());
                let text = address.map(peer::peer_key).unwrap_or_default();
                self.push(&mut key, text.as_bytes());
            }
            Source::Value(value) => {
                self.push(&mut key, value(head).unwrap_or_default().as_bytes());
            }
        }
        let key = seam::key_of(key);
        if self.hashed { ScopeKey::named(key) } else { ScopeKey::plain(key) }
    }

    fn new(name: impl Into<Key>, source: Source) -> Self {
        Self { name: name.into(), source, hashed: false }
    }

    /// Returns the key of requests without a value.
    fn empty(&self) -> CompactString {
        let mut key = CompactString::new(&self.name);
        key.push(':');
        key
    }

    fn push(&self, key: &mut CompactString, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        match str::from_utf8(value) {
            Ok(value) if !self.hashed && value.len() <= LONGEST => key.push_str(value),
            _ => push_hash(key, value),
        }
    }
}

impl From<&str> for Scope {
    /// Uses the same key for all requests.
    fn from(key: &str) -> Self {
        Self::fixed(key)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("name", &self.name)
            .field("hashed", &self.hashed)
            .finish_non_exhaustive()
    }
}

fn push_hash(key: &mut CompactString, value: &[u8]) {
    for byte in &Sha256::digest(value)[..HASH_BYTES] {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        key.push(digit(byte >> 4));
        key.push(digit(byte & 0xf));
    }
}

/// The number of bytes of a hash that a key holds.
const HASH_BYTES: usize = 16;

/// The maximum length of a value that isn't hashed, in bytes.
const LONGEST: usize = 128;
