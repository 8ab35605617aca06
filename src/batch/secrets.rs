use bytes::Bytes;
use http::HeaderMap;
use memchr::memmem;

/// The secrets among the headers of a request: the words of the values that are marked as sensitive.
/// Some servers repeat them when they refuse them.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.values().filter(|value| value.is_sensitive());
        let words = values.flat_map(|value| value.as_bytes().split(u8::is_ascii_whitespace));
        let secrets = words.filter(|word| word.len() >= SHORTEST).map(<[u8]>::to_vec);
        let mut secrets: Vec<_> = secrets.collect();
        // One may begin another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// A body with `***` in place of each.
    pub(crate) fn hide(&self, body: Bytes) -> Bytes {
        self.0.iter().fold(body, |body, secret| replace(body, secret))
    }

    /// A text with `***` in place of each.
    pub(crate) fn hide_in(&self, text: String) -> String {
        String::from_utf8_lossy(&self.hide(text.into())).into_owned()
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(..)")
    }
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

/// A shorter word is no secret, but one like `any` or `none` for a server that asks for no key.
const SHORTEST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitive_words_are_hidden_and_others_stay() {
        let mut headers = HeaderMap::new();
        for (name, value, is_sensitive) in [
            ("authorization", "Bearer sk-0123456789abcdef", true),
            ("x-longer", "sk-0123456789abcdef-longer", true),
            ("x-short", "none", true),
            ("anthropic-beta", "a-long-but-public-value", false),
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
