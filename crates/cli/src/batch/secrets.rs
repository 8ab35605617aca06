use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;

use paceline::provider::Api;

/// The secrets in the headers of a request, which some servers quote in errors: the words of
/// sensitive values of headers that carry credentials.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_hidden = |name, value: &HeaderValue| value.is_sensitive() && is_secret(name);
        let values = headers.iter().filter(|(name, value)| is_hidden(name, value));
        let words = values.flat_map(|(_, value)| value.as_bytes().split(u8::is_ascii_whitespace));
        let secrets = words.filter(|word| word.len() >= SHORTEST).map(<[u8]>::to_vec);
        let mut secrets: Vec<_> = secrets.collect();
        // Longest first, since one may be a prefix of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// Replaces each secret in a body with `***`.
    pub(crate) fn hide(&self, body: Bytes) -> Bytes {
        self.0.iter().fold(body, |body, secret| replace(body, secret))
    }

    /// Replaces each secret in a text with `***`.
    pub(crate) fn hide_in(&self, text: String) -> String {
        String::from_utf8_lossy(&self.hide(text.into())).into_owned()
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// Returns true if the header carries a secret. `HTTP-Referer` and `anthropic-beta` occur in
/// responses.
fn is_secret(name: &HeaderName) -> bool {
    Api::is_credential(name) || SIGNS.iter().any(|sign| name.as_str().contains(sign))
}

fn replace(body: Bytes, secret: &[u8]) -> Bytes {
    if memmem::find(&body, secret).is_none() {
        return body;
    }
    let mut hidden = Vec::with_capacity(body.len());
    let mut rest = &body[..];
    while let Some(at) = memmem::find(rest, secret) {
        hidden.extend_from_slice(&rest[..at]);
        hidden.extend_from_slice(b"***");
        rest = &rest[at + secret.len()..];
    }
    hidden.extend_from_slice(rest);
    hidden.into()
}

/// Parts of the names of headers that carry credentials.
const SIGNS: &[&str] = &["auth", "cookie", "key", "pass", "secret", "token"];

/// Shorter words are not secrets, such as `none` for a server without keys.
const SHORTEST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitive_words_are_hidden_and_others_stay() {
        let mut headers = HeaderMap::new();
        for (name, value, is_sensitive) in [
            ("authorization", "Bearer sk-0123456789abcdef", true),
            ("x-longer-key", "sk-0123456789abcdef-longer", true),
            ("x-short", "none", true),
            ("anthropic-beta", "a-long-but-public-value", true),
        ] {
            let mut value: http::HeaderValue = value.parse().expect("a value");
            value.set_sensitive(is_sensitive);
            headers.insert(name, value);
        }
        let secrets = Secrets::of(&headers);
        let text = "Bearer sk-0123456789abcdef, sk-0123456789abcdef-longer: none, \
                    a-long-but-public-value";
        let hidden = "Bearer ***, ***: none, a-long-but-public-value";
        assert_eq!(secrets.hide_in(text.to_owned()), hidden);
        assert_eq!(format!("{secrets:?}"), "Secrets(..)");
    }
}
