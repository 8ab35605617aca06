//! How the API of each provider is called.

use http::header::InvalidHeaderValue;
use http::{HeaderName, HeaderValue};

use super::Profile;
use super::place::Place;

/// How the API of a provider is called: its address, its paths, and the header that carries its key.
///
/// ```
/// use tollgate::provider::ANTHROPIC;
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
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Api {
    /// Scheme and host; `None` where they differ for each account.
    pub origin: Option<&'static str>,
    /// The path of a request that names none. `{model}` stands for the model of its body.
    pub endpoint: &'static str,
    /// The path at which the API has OpenAI's endpoints, in place of OpenAI's `/v1`.
    pub openai_path: &'static str,
    /// The header that carries the key, in lower case.
    pub key_header: &'static str,
    /// What precedes the key in that header: `Bearer ` or nothing.
    pub key_prefix: &'static str,
    /// The environment variables that the provider's own SDKs read the key from, the first first.
    pub key_variables: &'static [&'static str],
    /// Whether a request without a credential is refused.
    pub needs_key: bool,
    /// Headers that every request needs.
    pub constant_headers: &'static [(&'static str, &'static str)],
    /// How to get a credential, or an address, where that isn't a matter of course.
    pub advice: &'static str,
}

impl Api {
    /// The header that carries this key; it is marked as sensitive.
    ///
    /// # Errors
    /// If the key has characters that no header may have.
    pub fn credential(&self, key: &str) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{}{}", self.key_prefix, key.trim()))?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(self.key_header), value))
    }

    /// Whether a header of this name carries a credential at any of the providers.
    pub fn is_credential(name: &HeaderName) -> bool {
        TABLE.iter().any(|(_, api)| api.key_header == name.as_str())
    }
}

impl Profile {
    /// How its API is called. For a profile made by [`like`](Self::like) that is how the one that it is
    /// like is called; its address is its own [`base_url`](Self::base_url).
    pub fn api(&self) -> &'static Api {
        let name = self.rules_name();
        let row = TABLE.iter().find(|(provider, _)| *provider == name);
        &row.expect("a test looks up every built-in profile").1
    }

    /// The environment variables that hold its key, the first that is set counts.
    ///
    /// Those of the provider's own SDKs. A profile with a name of its own has one variable that
    /// follows from it, so that no other provider's key is ever sent there: `MY_VLLM_API_KEY` for
    /// `my-vllm`.
    ///
    /// ```
    /// use tollgate::provider::OPENAI;
    ///
    /// assert_eq!(OPENAI.key_variables(), ["OPENAI_API_KEY"]);
    /// let own = OPENAI.like("my-vllm", "http://gpu-7:8000")?;
    /// assert_eq!(own.key_variables(), ["MY_VLLM_API_KEY"]);
    /// # Ok::<(), tollgate::provider::InvalidProfile>(())
    /// ```
    pub fn key_variables(&self) -> Vec<String> {
        if self.name() == self.rules_name() {
            return self.api().key_variables.iter().map(|&name| name.to_owned()).collect();
        }
        let word = |byte: char| if byte.is_ascii_alphanumeric() { byte } else { '_' };
        let name: String = self.name().to_ascii_uppercase().chars().map(word).collect();
        vec![format!("{name}_API_KEY")]
    }

    /// Whether a URL is at a host of the provider itself, or below the base URL of a profile that has
    /// one of its own: not merely one whose path looks like its.
    pub fn is_at(&self, url: &str) -> bool {
        let place = Place::of(url);
        match self.base_url() {
            Some(base) => place.is_below(&Place::of(base)),
            None => self.name() == self.rules_name() && self.has_host(&place),
        }
    }
}

/// An API that copies OpenAI's.
const fn bearer(origin: &'static str, key_variables: &'static [&'static str]) -> Api {
    Api {
        origin: Some(origin),
        endpoint: CHAT,
        openai_path: "/v1",
        key_header: "authorization",
        key_prefix: "Bearer ",
        key_variables,
        needs_key: true,
        constant_headers: &[],
        advice: "",
    }
}

/// A server of one's own, which takes any request.
const fn local(origin: Option<&'static str>) -> Api {
    Api { origin, needs_key: false, ..bearer("", &[]) }
}

/// One row for each built-in profile, by name.
const TABLE: &[(&str, Api)] = &[
    ("openai", bearer("https://api.openai.com", &["OPENAI_API_KEY"])),
    (
        "azure",
        Api {
            origin: None,
            openai_path: "/openai/v1",
            key_header: "api-key",
            key_prefix: "",
            advice: "its base URL is https://RESOURCE.openai.azure.com; with Microsoft Entra ID, give \
                     the token as --header \"Authorization=Bearer TOKEN\"",
            ..bearer("", &["AZURE_OPENAI_API_KEY"])
        },
    ),
    (
        "anthropic",
        Api {
            endpoint: "/v1/messages",
            key_header: "x-api-key",
            key_prefix: "",
            constant_headers: &[("anthropic-version", "2023-06-01")],
            ..bearer("https://api.anthropic.com", &["ANTHROPIC_API_KEY"])
        },
    ),
    (
        "vertex-anthropic",
        Api {
            origin: None,
            endpoint: "/publishers/anthropic/models/{model}:rawPredict",
            advice: VERTEX,
            ..bearer("", &[])
        },
    ),
    (
        "vertex",
        Api {
            origin: None,
            endpoint: "/publishers/google/models/{model}:generateContent",
            openai_path: "/endpoints/openapi",
            advice: VERTEX,
            ..bearer("", &[])
        },
    ),
    (
        "gemini",
        Api {
            endpoint: "/v1beta/models/{model}:generateContent",
            openai_path: "/v1beta/openai",
            key_header: "x-goog-api-key",
            key_prefix: "",
            ..bearer(
                "https://generativelanguage.googleapis.com",
                &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            )
        },
    ),
    (
        "bedrock",
        Api {
            origin: None,
            openai_path: "/openai/v1",
            advice: "its base URL is https://bedrock-runtime.REGION.amazonaws.com; requests are not \
                     signed with AWS access keys: create an Amazon Bedrock API key, or send through \
                     a proxy that signs",
            ..bearer("", &["AWS_BEARER_TOKEN_BEDROCK"])
        },
    ),
    ("mistral", bearer("https://api.mistral.ai", &["MISTRAL_API_KEY"])),
    (
        "groq",
        Api { openai_path: "/openai/v1", ..bearer("https://api.groq.com", &["GROQ_API_KEY"]) },
    ),
    (
        "cohere",
        Api {
            endpoint: "/v2/chat",
            openai_path: "/compatibility/v1",
            ..bearer("https://api.cohere.com", &["CO_API_KEY", "COHERE_API_KEY"])
        },
    ),
    ("deepseek", bearer("https://api.deepseek.com", &["DEEPSEEK_API_KEY"])),
    (
        "openrouter",
        Api { openai_path: "/api/v1", ..bearer("https://openrouter.ai", &["OPENROUTER_API_KEY"]) },
    ),
    ("together", bearer("https://api.together.xyz", &["TOGETHER_API_KEY"])),
    ("cerebras", bearer("https://api.cerebras.ai", &["CEREBRAS_API_KEY"])),
    ("huggingface", bearer("https://router.huggingface.co", &["HF_TOKEN"])),
    (
        "writer",
        Api { endpoint: "/v1/chat", ..bearer("https://api.writer.com", &["WRITER_API_KEY"]) },
    ),
    (
        "voyage",
        Api {
            endpoint: "/v1/embeddings",
            ..bearer("https://api.voyageai.com", &["VOYAGE_API_KEY"])
        },
    ),
    ("ollama", local(Some("http://127.0.0.1:11434"))),
    ("vllm", local(None)),
    ("llama-cpp", local(Some("http://127.0.0.1:8080"))),
    ("compatible", local(None)),
    ("compatible-usage", local(None)),
];

const CHAT: &str = "/v1/chat/completions";

const VERTEX: &str = "its base URL is \
    https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION; it takes access tokens \
    that expire after an hour: put the output of `gcloud auth print-access-token` into a variable and \
    name that with --api-key-env";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_one_row_with_headers_that_can_be_sent() {
        for profile in Profile::all() {
            let rows = TABLE.iter().filter(|(name, _)| *name == profile.name());
            assert_eq!(rows.count(), 1, "{profile:?}");
            let api = profile.api();
            let (name, value) = api.credential(" a-key\n").expect("a key");
            assert!(Api::is_credential(&name) && value.is_sensitive(), "{profile:?}");
            for (name, value) in api.constant_headers {
                assert_eq!(
                    (HeaderName::from_static(name), *value),
                    (name.parse().unwrap(), *value)
                );
            }
            let says_how = !api.advice.is_empty() || !api.key_variables.is_empty();
            assert!(says_how || !api.needs_key, "{profile:?}");
        }
        assert_eq!(TABLE.len(), Profile::all().len());
    }

    #[test]
    fn no_two_providers_share_a_variable() {
        let variables = TABLE.iter().flat_map(|(_, api)| api.key_variables);
        let mut variables: Vec<_> = variables.collect();
        let all = variables.len();
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables.len(), all);
    }

    #[test]
    fn a_path_that_looks_like_a_provider_is_not_its_host() {
        for (provider, url, expected) in [
            ("openai", "https://api.openai.com/v1", true),
            ("openai", "https://api.openai.com.evil.com/v1", false),
            ("groq", "https://evil.com/groq/openai/v1", false),
            ("anthropic", "https://evil.com/v1/messages", false),
            ("azure", "https://mine.openai.azure.com", true),
            ("vertex", "https://europe-west1-aiplatform.googleapis.com/v1/projects/p", true),
            ("compatible", "https://evil.com", false),
        ] {
            let profile = Profile::named(provider).expect("built in");
            assert_eq!(profile.is_at(url), expected, "{provider} {url}");
        }
        let own = crate::provider::ANTHROPIC.like("gw", "https://gw/a").expect("a profile");
        assert!(own.is_at("https://gw/a/v1") && !own.is_at("https://api.anthropic.com/v1"));
    }
}
