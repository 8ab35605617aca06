use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, Request};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use tollgate::Key;

use super::client::RequestBody;
use crate::config::Scope;
use tollgate::middleware::{Classified, Http, ScopeKey};
use tollgate::provider::{ANTHROPIC, GEMINI, Profile, UnreadableRequest};

/// What the requests to an upstream are charged to.
#[derive(Debug, Clone)]
pub(super) struct Scopes {
    read: Http,
    /// The model first, if it is one of them: the provider's own limits belong to it.
    scopes: Vec<Scope>,
    /// Where credentials stand: where the provider reads them first, so that nothing said elsewhere
    /// makes another key.
    credentials: [Credential; 5],
}

/// Where a credential stands.
#[derive(Debug, Clone, Copy)]
enum Credential {
    Bearer,
    Header(&'static str),
    Query,
}

impl Scopes {
    pub(super) fn new(profile: Profile, scopes: &[Scope]) -> Self {
        let mut scopes = scopes.to_vec();
        scopes.sort_by_key(|scope| *scope != Scope::Model);
        Self { read: Http::new(profile), scopes, credentials: credentials(profile) }
    }

    /// What a request is, whose fields are still the client's, and why that can't be read for certain.
    ///
    /// A field that is missing leaves its prefix alone, a key that all such requests share.
    pub(super) fn classify(
        &self,
        request: &Request<RequestBody>,
    ) -> (Classified, Option<UnreadableRequest>) {
        let (classified, unreadable) = self.read.classify_strictly(request);
        let model = Key::from(classified.keys().first().map_or("", ScopeKey::as_str));
        let keys = self.scopes.iter().map(|scope| match scope {
            Scope::Model => ScopeKey::public(model.clone()),
            Scope::ApiKey => self.api_key(request.headers(), request.uri().query()),
            Scope::Key(key) => ScopeKey::public(key.as_str()),
            Scope::Header { name, prefix } => of_header(request.headers(), name, prefix),
        });
        (classified.with_keys(keys), unreadable)
    }

    /// The start of the hash of what proves who asks.
    fn api_key(&self, headers: &HeaderMap, query: Option<&str>) -> ScopeKey {
        let of = |credential: &Credential| match credential {
            Credential::Bearer => bearer(headers),
            Credential::Header(name) => Some(headers.get(*name)?.as_bytes().to_vec()),
            Credential::Query => in_query(query?),
        };
        let Some(credential) = self.credentials.iter().find_map(of) else {
            return ScopeKey::named(API_KEY);
        };
        let hash = Sha256::digest(credential);
        let mut key = API_KEY.to_owned();
        for byte in &hash[..HASHED] {
            key.push_str(&format!("{byte:02x}"));
        }
        ScopeKey::named(key)
    }
}

/// <https://ai.google.dev/api>, <https://docs.anthropic.com/en/api/overview>
fn credentials(profile: Profile) -> [Credential; 5] {
    let [azure, anthropic, google] =
        ["api-key", "x-api-key", "x-goog-api-key"].map(Credential::Header);
    let (bearer, query) = (Credential::Bearer, Credential::Query);
    match profile.built_in() {
        profile if profile == GEMINI => [google, query, bearer, anthropic, azure],
        profile if profile == ANTHROPIC => [anthropic, bearer, azure, google, query],
        _ => [bearer, azure, anthropic, google, query],
    }
}

fn of_header(headers: &HeaderMap, name: &HeaderName, prefix: &str) -> ScopeKey {
    let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    match format!("{prefix}{}", String::from_utf8_lossy(value)) {
        text if text.is_empty() => ScopeKey::named(format!("{name}:")),
        text if prefix.ends_with(':') => ScopeKey::named(text),
        text => ScopeKey::new(text),
    }
}

fn bearer(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(BEARER.len())?;
    let token = scheme.eq_ignore_ascii_case(BEARER).then_some(token)?;
    Some(token.trim_ascii().to_vec())
}

fn in_query(query: &str) -> Option<Vec<u8>> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| percent_decode_str(name).eq(*b"key"))?;
    Some(percent_decode_str(value).collect())
}

const BEARER: &[u8] = b"bearer ";

const API_KEY: &str = "api_key:";

/// Bytes of a SHA-256.
const HASHED: usize = 8;
