use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, Request};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use super::client::RequestBody;
use crate::config::KeySource;
use tollgate::middleware::{Classified, Http, ScopeKey};
use tollgate::provider::{ANTHROPIC, GEMINI, Profile, UnreadableRequest};

/// Derives the keys that requests to an upstream are charged to.
#[derive(Debug, Clone)]
pub(super) struct KeySources {
    classifier: Http,
    /// The model is first, because the provider's own limits belong to it.
    sources: Vec<KeySource>,
    /// The locations of credentials, in the provider's order of precedence, so that adding another
    /// credential does not change the key.
    credentials: [Credential; 5],
}

/// The location of a credential in a request.
#[derive(Debug, Clone, Copy)]
enum Credential {
    Bearer,
    Header(&'static str),
    Query,
}

impl KeySources {
    pub(super) fn new(profile: Profile, sources: &[KeySource]) -> Self {
        let mut sources = sources.to_vec();
        sources.sort_by_key(|source| *source != KeySource::Model);
        Self { classifier: Http::new(profile), sources, credentials: credentials(profile) }
    }

    /// Classifies a request with the client's original headers. Also returns the reason if its model
    /// cannot be determined.
    ///
    /// All requests without the header of a key source share one key, which is the prefix.
    pub(super) fn classify(
        &self,
        request: &Request<RequestBody>,
    ) -> (Classified, Option<UnreadableRequest>) {
        let (classified, unreadable) = self.classifier.classify_strictly(request);
        let model = classified.keys().first().cloned().unwrap_or_else(|| ScopeKey::new(""));
        let keys = self.sources.iter().map(|source| match source {
            KeySource::Model => model.clone().shown_in_full(),
            KeySource::ApiKey => self.api_key(request.headers(), request.uri().query()),
            KeySource::Key(key) => ScopeKey::public(key.as_str()),
            KeySource::Header { name, prefix } => header_key(request.headers(), name, prefix),
        });
        (classified.with_keys(keys), unreadable)
    }

    /// Returns a key with the first bytes of the hash of the credential.
    fn api_key(&self, headers: &HeaderMap, query: Option<&str>) -> ScopeKey {
        let of = |credential: &Credential| match credential {
            Credential::Bearer => bearer_token(headers),
            Credential::Header(name) => Some(headers.get(*name)?.as_bytes().to_vec()),
            Credential::Query => query_credential(query?),
        };
        let Some(credential) = self.credentials.iter().find_map(of) else {
            return ScopeKey::named(API_KEY);
        };
        let hash = Sha256::digest(credential);
        let mut key = API_KEY.to_owned();
        for byte in &hash[..HASH_LENGTH] {
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

fn header_key(headers: &HeaderMap, name: &HeaderName, prefix: &str) -> ScopeKey {
    let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    match format!("{prefix}{}", String::from_utf8_lossy(value)) {
        text if text.is_empty() => ScopeKey::named(format!("{name}:")),
        text if prefix.ends_with(':') => ScopeKey::named(text),
        text => ScopeKey::new(text),
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(BEARER.len())?;
    let token = scheme.eq_ignore_ascii_case(BEARER).then_some(token)?;
    Some(token.trim_ascii().to_vec())
}

fn query_credential(query: &str) -> Option<Vec<u8>> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| percent_decode_str(name).eq(*b"key"))?;
    Some(percent_decode_str(value).collect())
}

const BEARER: &[u8] = b"bearer ";

const API_KEY: &str = "api_key:";

/// The number of hash bytes in a key.
const HASH_LENGTH: usize = 8;
