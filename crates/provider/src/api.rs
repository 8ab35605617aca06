use http::header::InvalidHeaderValue;
use http::{HeaderName, HeaderValue};

/// The address, the paths and the credential header of a provider's API.
///
/// ```
/// use paceline_provider::ANTHROPIC;
///
/// let api = ANTHROPIC.api();
/// assert_eq!((api.key_header, api.endpoint), ("x-api-key", "/v1/messages"));
/// assert_eq!(ANTHROPIC.key_variables(), ["ANTHROPIC_API_KEY"]);
/// ```
///
/// Sources, read in November 2026: the authentication pages of OpenAI
/// (platform.openai.com/docs/api-reference), Anthropic (docs.claude.com/en/api/overview), Google
/// (ai.google.dev/gemini-api/docs/api-key), Microsoft (learn.microsoft.com, "Azure OpenAI v1 API") and
/// Amazon (docs.aws.amazon.com/bedrock, "Use an Amazon Bedrock API key"); for all other providers the
/// variable and the base URL of their own SDKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Api {
    /// Scheme and host; `None` if they differ for each account.
    pub origin: Option<&'static str>,
    /// The default path of a request. `{model}` is replaced by the model of its body.
    pub endpoint: &'static str,
    /// The base path of the OpenAI-compatible endpoints: `/v1` at OpenAI.
    pub openai_path: &'static str,
    /// The header that carries the key, in lower case.
    pub key_header: &'static str,
    /// The text before the key in that header: `Bearer ` or empty.
    pub key_prefix: &'static str,
    /// The environment variables that the provider's own SDKs read the key from, the preferred one
    /// first.
    pub key_variables: &'static [&'static str],
    /// True if a request without a credential is refused.
    pub needs_key: bool,
    /// Headers that every request needs, with names in lower case.
    pub constant_headers: &'static [(&'static str, &'static str)],
    /// Instructions for an unusual credential or address; else empty.
    pub advice: &'static str,
}

impl Api {
    /// Returns an API that is called as OpenAI's, with a bearer token from one of these environment
    /// variables.
    pub const fn bearer(key_variables: &'static [&'static str]) -> Self {
        Self {
            origin: None,
            endpoint: "/v1/chat/completions",
            openai_path: "/v1",
            key_header: "authorization",
            key_prefix: "Bearer ",
            key_variables,
            needs_key: true,
            constant_headers: &[],
            advice: "",
        }
    }

    /// Returns an API that is called as OpenAI's and needs no key.
    pub const fn without_key() -> Self {
        Self { needs_key: false, ..Self::bearer(&[]) }
    }

    /// Sets [`origin`](Self#structfield.origin).
    #[must_use]
    pub const fn origin(self, origin: &'static str) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Sets [`endpoint`](Self#structfield.endpoint).
    #[must_use]
    pub const fn endpoint(self, path: &'static str) -> Self {
        Self { endpoint: path, ..self }
    }

    /// Sets [`openai_path`](Self#structfield.openai_path).
    #[must_use]
    pub const fn openai_path(self, path: &'static str) -> Self {
        Self { openai_path: path, ..self }
    }

    /// Sets the header that carries the key alone, instead of a bearer token.
    #[must_use]
    pub const fn key_header(self, name: &'static str) -> Self {
        Self { key_header: name, key_prefix: "", ..self }
    }

    /// Sets [`constant_headers`](Self#structfield.constant_headers).
    #[must_use]
    pub const fn constant_headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { constant_headers: headers, ..self }
    }

    /// Sets [`advice`](Self#structfield.advice).
    #[must_use]
    pub const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }

    /// Returns the header that carries this key, marked as sensitive.
    ///
    /// # Errors
    /// [`InvalidHeaderValue`] if the key has characters that a header value can't have.
    pub fn credential(&self, key: &str) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{}{}", self.key_prefix, key.trim()))?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(self.key_header), value))
    }
}
