use std::fmt;
use std::sync::Arc;

use crate::quota::Key;
use axum::extract::MatchedPath;
use compact_str::CompactString;
use http::HeaderName;
use sha2::{Digest, Sha256};

use super::head::Head;
use super::peer::{self, Proxies};
use crate::middleware::ScopeKey;

/// Where the key of a request comes from.
///
/// The key is the scope's name, a colon, and what the request says: `peer:203.0.113.7`,
/// `x-tenant:acme`. So a quota for `peer:*` gives each address a limit of its own. A request that
/// doesn't say falls under the name and the colon alone, such as `x-tenant:`, a key that all such
/// requests share and that the same quota covers.
///
/// Logs, events, stores and statistics show keys, and a refusal tells the client its own. A header's
/// value may be a secret, so it is kept as the first 128 bits of its SHA-256, in hexadecimal, and a
/// client is told nothing of it; [`plain`](Self::plain) keeps it as it is. So is anything else longer
/// than 128 bytes. [`key_of`](Self::key_of) says what a value's key is.
///
/// ```
/// use tollgate::middleware::respond::Scope;
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
    /// The name is the key.
    Fixed,
    Header(HeaderName),
    Path,
    Route,
    Peer(Option<Proxies>),
    Value(Arc<dyn Fn(Head<'_>) -> Option<Key> + Send + Sync>),
}

impl Scope {
    /// One key for all requests.
    pub fn fixed(key: impl Into<Key>) -> Self {
        Self::new(key, Source::Fixed)
    }

    /// The value of this header field, kept as its hash: an API key, a token. Of several the first.
    pub fn header(name: HeaderName) -> Self {
        let text = Key::from(name.as_str());
        Self::new(text, Source::Header(name)).hashed()
    }

    /// The path, as it was asked for: `path:/v1/users/42`. Clients choose it; see
    /// [`route`](Self::route).
    pub fn path() -> Self {
        Self::new("path", Source::Path)
    }

    /// The route that axum found: `route:/v1/users/{id}`. What has no route falls under `route:`.
    pub fn route() -> Self {
        Self::new("route", Source::Route)
    }

    /// The address that the connection comes from: `peer:203.0.113.7`. IPv6 counts by /64, of which
    /// any one client has at least one: `peer:2001:db8:1:2::/64`.
    ///
    /// Header fields are not believed. The address comes from axum's `ConnectInfo<SocketAddr>`: serve
    /// with `into_make_service_with_connect_info::<SocketAddr>()`. Without it all requests fall under
    /// `peer:`, and a warning says so once.
    pub fn peer() -> Self {
        Self::new("peer", Source::Peer(None))
    }

    /// The same behind proxies: the nearest address that isn't one of them.
    pub fn peer_behind(proxies: Proxies) -> Self {
        Self::new("peer", Source::Peer(Some(proxies)))
    }

    /// What `value` makes of an extension that a layer further out has put into the request: who is
    /// logged in, say. It is kept as it is.
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

    /// What `value` makes of the request. It is kept as it is.
    pub fn by<V: Into<Key>>(
        name: impl Into<Key>,
        value: impl Fn(Head<'_>) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Source::Value(Arc::new(move |head| value(head).map(Into::into))))
    }

    /// Another name, the part of the key before the colon.
    #[must_use]
    pub fn named(mut self, name: impl Into<Key>) -> Self {
        self.name = name.into();
        self
    }

    /// Keeps and shows what the request says as it is: for what is no secret.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.hashed = false;
        self
    }

    /// Keeps what the request says as its hash.
    #[must_use]
    pub fn hashed(mut self) -> Self {
        self.hashed = true;
        self
    }

    /// The key of requests that say this, to set a quota or to look at its statistics.
    pub fn key_of(&self, value: &str) -> Key {
        let mut key = self.empty();
        self.push(&mut key, value.as_bytes());
        Key::from_text(key)
    }

    /// The key of this request.
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
                let text = address.map(peer::counted_as).unwrap_or_default();
                self.push(&mut key, text.as_bytes());
            }
            Source::Value(value) => {
                self.push(&mut key, value(head).unwrap_or_default().as_bytes());
            }
        }
        let key = Key::from_text(key);
        if self.hashed { ScopeKey::named(key) } else { ScopeKey::public(key) }
    }

    fn new(name: impl Into<Key>, source: Source) -> Self {
        Self { name: name.into(), source, hashed: false }
    }

    /// The key of a request that doesn't say.
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
    /// One key for all requests.
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
    for byte in &Sha256::digest(value)[..KEPT] {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        key.push(digit(byte >> 4));
        key.push(digit(byte & 0xf));
    }
}

/// As much of a hash as is kept, in bytes.
const KEPT: usize = 16;

/// The longest value that is kept as it is, in bytes.
const LONGEST: usize = 128;
