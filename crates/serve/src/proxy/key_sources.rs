use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, Request, StatusCode};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use super::client::RequestBody;
use crate::config::{API_KEY, KeySource};
use crate::problem::Problem;
use crate::single_header::only_value;
use paceline::limiter::Limiter;
use paceline::middleware::{Classified, Http, ScopeKey};
use paceline::provider::{ANTHROPIC, GEMINI, Profile, UnreadableRequest};
use paceline_config::RATE_PREFIX;

/// Derives the keys that requests to an upstream are charged to.
#[derive(Debug, Clone)]
pub(super) struct KeySources {
    classifier: Http,
    /// The model is first, because the provider's own limits belong to it.
    sources: Vec<KeySource>,
    /// The model that the server runs if a request names none.
    default_model: Option<String>,
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
    pub(super) fn new(
        profile: Profile,
        sources: &[KeySource],
        default_model: Option<&str>,
    ) -> Self {
        let mut sources = sources.to_vec();
        sources.sort_by_key(|source| *source != KeySource::Model);
        Self {
            classifier: Http::new(profile),
            sources,
            default_model: default_model.map(str::to_owned),
            credentials: credentials(profile),
        }
    }

    /// Classifies a request with the client's original headers. Also returns the reason if its model
    /// cannot be determined.
    ///
    /// # Errors
    /// Returns a [`Problem`] if a request lacks the header of a scope, or names a key of another scope.
    pub(super) fn classify(
        &self,
        request: &Request<RequestBody>,
        limiter: &Limiter,
    ) -> Result<(Classified, Option<UnreadableRequest>), Problem> {
        let default_model = self.default_model.as_deref();
        let (classified, unreadable) = self.classifier.classify_strictly(request, default_model);
        let model = classified.keys().first().cloned().unwrap_or_else(|| ScopeKey::new(""));
        let keys = self.sources.iter().map(|source| match source {
            KeySource::Model => Ok(model.clone().shown_in_full()),
            KeySource::ApiKey => self.api_key(request.headers(), request.uri().query()),
            KeySource::Key(key) => Ok(ScopeKey::public(key.as_str())),
            KeySource::Header { name, prefix, default } => {
                header_key(request.headers(), name, prefix, default.as_deref())
            }
        });
        let classified = classified.with_keys(keys.collect::<Result<Vec<_>, _>>()?);
        // The quota may have another name of the model, which is its key then.
        let classified = classified.with_names_in_quotas(limiter);
        for (source, key) in self.sources.iter().zip(classified.keys()) {
            self.check_key(source, key.as_str())?;
        }
        Ok((classified, unreadable))
    }

    /// Checks that no key that a client has named is that of another scope. A key belongs to the scope with the
    /// longest prefix that it begins with.
    fn check_key(&self, source: &KeySource, key: &str) -> Result<(), Problem> {
        let (KeySource::Model | KeySource::Header { .. }, Some(own)) = (source, source.prefix())
        else {
            return Ok(());
        };
        let prefixes = self.sources.iter().filter_map(KeySource::prefix).chain([RATE_PREFIX]);
        let foreign = |prefix: &&str| prefix.len() > own.len() && key.starts_with(*prefix);
        let is_fixed = |other: &&KeySource| matches!(other, KeySource::Key(fixed) if fixed == key);
        match prefixes.into_iter().find(foreign) {
            Some(prefix) => Err(foreign_key(
                source,
                &format!("begins with `{prefix}`, as only the keys of another scope do"),
            )),
            None if self.sources.iter().any(|other| is_fixed(&other)) => {
                Err(foreign_key(source, "is the key of another scope"))
            }
            None => Ok(()),
        }
    }

    /// Removes the headers of scopes, which concern only this server.
    pub(super) fn remove_headers(&self, headers: &mut HeaderMap) {
        for source in &self.sources {
            if let KeySource::Header { name, .. } = source {
                headers.remove(name);
            }
        }
    }

    /// Returns a key with the first bytes of the hash of the credential.
    fn api_key(&self, headers: &HeaderMap, query: Option<&str>) -> Result<ScopeKey, Problem> {
        let of = |credential: &Credential| match credential {
            Credential::Bearer => bearer_token(headers).map(Ok),
            Credential::Header(name) => {
                headers.get(*name).map(|value| Ok(value.as_bytes().to_vec()))
            }
            Credential::Query => query_credential(query?).transpose(),
        };
        let Some(credential) = self.credentials.iter().find_map(of).transpose()? else {
            return Ok(ScopeKey::named(API_KEY));
        };
        let hash = Sha256::digest(credential);
        let mut key = API_KEY.to_owned();
        for byte in &hash[..HASH_LENGTH] {
            key.push_str(&format!("{byte:02x}"));
        }
        Ok(ScopeKey::named(key))
    }
}

/// Checks that a request has each credential once, since the provider might use another one than this server.
///
/// # Errors
/// Returns a [`Problem`] that names the header.
pub(super) fn check_credentials(headers: &HeaderMap) -> Result<(), Problem> {
    CREDENTIALS.iter().try_for_each(|name| only_value(headers, name).map(drop))
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

fn header_key(
    headers: &HeaderMap,
    name: &HeaderName,
    prefix: &str,
    default: Option<&str>,
) -> Result<ScopeKey, Problem> {
    let value = only_value(headers, name)?.unwrap_or_default();
    let value = std::str::from_utf8(value).map_err(|_| {
        invalid_scope(format!("the header `{name}` is not UTF-8; send it in UTF-8"))
    })?;
    let value = match (value.trim(), default) {
        ("", Some(default)) => default,
        ("", None) => {
            let detail = format!(
                "the header `{name}` is missing or empty; send it, or set its `default` in \
                 `serve.scopes`"
            );
            return Err(Problem::new(StatusCode::BAD_REQUEST, "missing_header", detail));
        }
        (value, _) => value,
    };
    let text = format!("{prefix}{value}");
    Ok(if prefix.ends_with(':') { ScopeKey::named(text) } else { ScopeKey::new(text) })
}

fn foreign_key(source: &KeySource, reason: &str) -> Problem {
    invalid_scope(match source {
        KeySource::Header { name, .. } => {
            format!("the value of the header `{name}` {reason} (`serve.scopes`); send another one")
        }
        _ => format!("the model {reason} (`serve.scopes`); name another one"),
    })
}

fn invalid_scope(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid_scope", detail)
}

fn bearer_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(BEARER.len())?;
    let token = scheme.eq_ignore_ascii_case(BEARER).then_some(token)?;
    Some(token.trim_ascii().to_vec())
}

fn query_credential(query: &str) -> Result<Option<Vec<u8>>, Problem> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(name, _)| percent_decode_str(name).eq(*b"key"));
    let value = values.next().map(|(_, value)| percent_decode_str(value).collect());
    match values.next() {
        Some(_) => {
            let detail = "the parameter `key` is given more than once; send it once";
            Err(Problem::new(StatusCode::BAD_REQUEST, "repeated_parameter", detail))
        }
        None => Ok(value),
    }
}

const BEARER: &[u8] = b"bearer ";

/// The headers with credentials of a provider.
static CREDENTIALS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// The number of hash bytes in a key.
const HASH_LENGTH: usize = 8;
