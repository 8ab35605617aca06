use std::str::FromStr;

use http::HeaderName;

use crate::location::Location;
use crate::{
    AI21, ANTHROPIC, ARK, AZURE, Api, BASETEN, BEDROCK, BEDROCK_MANTLE, CEREBRAS, COHERE,
    COMPATIBLE, COMPATIBLE_USAGE, DASHSCOPE, DEEPINFRA, DEEPSEEK, FIREWORKS, GEMINI, GITHUB_MODELS,
    GROQ, HUGGINGFACE, HYPERBOLIC, LLAMA_CPP, MINIMAX, MISTRAL, MOONSHOT, NEBIUS, NVIDIA, OLLAMA,
    OLLAMA_CLOUD, OPENAI, OPENROUTER, Profile, SAMBANOVA, TOGETHER, UnknownProvider, VERTEX,
    VERTEX_ANTHROPIC, VLLM, VOYAGE, WRITER, XAI, ZAI,
};

impl Profile {
    /// Returns the built-in profiles.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// Returns the built-in profile of this name; ASCII case does not matter.
    ///
    /// [`parse`](str::parse) does the same with an error that lists the names.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|profile| profile.is_named(name)).copied()
    }

    /// Returns the profile of this name among these, else the built-in one; ASCII case does not
    /// matter.
    ///
    /// # Errors
    /// [`UnknownProvider`], which lists the names, if there is none.
    pub fn named_among(profiles: &[Self], name: &str) -> Result<Self, UnknownProvider> {
        let found = known(profiles).find(|profile| profile.is_named(name));
        found.copied().ok_or_else(|| UnknownProvider::new(name, known(profiles).map(Self::name)))
    }

    /// Returns the built-in profile of the provider at this base URL, request URL or host.
    ///
    /// A provider is found by its host; else by a path that only one provider has (`/v1/messages`,
    /// `/model/NAME/converse`, `...:generateContent`), or by a first segment of the path that is its
    /// name, as behind gateways (`/groq/openai/v1/...`). [`COMPATIBLE`] for all other URLs.
    pub fn find(url: &str) -> Self {
        Self::find_among(&[], url)
    }

    /// Returns the profile at this URL, among these and the built-in ones.
    ///
    /// A profile with a [base URL](Self::base_url) is found at and below it (the longest counts, and
    /// of equals the first), one of [custom rules](Self::custom) by their URLs, and any by its name as
    /// the first segment of the path. A base URL counts before all other URLs, and the given profiles
    /// before the built-in ones.
    pub fn find_among(profiles: &[Self], url: &str) -> Self {
        let location = Location::of(url);
        let by_url = |matches: &dyn Fn(&str) -> bool| {
            let custom = profiles.iter().filter(|profile| profile.is_custom());
            let mut found = custom.chain(ALL);
            found.find(|profile| profile.rules().urls.iter().any(|url| matches(url))).copied()
        };
        let by_segment = || {
            let name = location.first_segment()?;
            known(profiles).find(|profile| profile.is_named(name)).copied()
        };
        Self::by_base_url(profiles, &location)
            .or_else(|| by_url(&|url: &str| location.matches_host(url)))
            .or_else(|| by_url(&|url: &str| location.matches_path(url)))
            .or_else(by_segment)
            .unwrap_or(COMPATIBLE)
    }

    /// Returns true if a URL is at a host of the provider itself, or below the base URL of a profile
    /// that has one. A path that only looks like the provider's doesn't count.
    pub fn is_at(&self, url: &str) -> bool {
        let location = Location::of(url);
        let is_host = || self.rules().urls.iter().any(|url| location.matches_host(url));
        match self.base_url() {
            Some(base) => location.is_below(&Location::of(base)),
            None => self.has_name_of_rules() && is_host(),
        }
    }

    fn by_base_url(profiles: &[Self], location: &Location<'_>) -> Option<Self> {
        let below = |profile: &&Self| {
            profile.base_url().is_some_and(|base| location.is_below(&Location::of(base)))
        };
        let length = |profile: &&Self| profile.base_url().map(str::len);
        profiles.iter().rev().filter(below).max_by_key(length).copied()
    }

    fn is_named(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }
}

impl Api {
    /// Returns true if a header of this name carries the key of a built-in provider.
    pub fn is_credential(name: &HeaderName) -> bool {
        ALL.iter().any(|profile| profile.api().key_header == name.as_str())
    }
}

impl FromStr for Profile {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        Self::named_among(&[], name)
    }
}

/// Returns these profiles, then the built-in ones.
fn known(profiles: &[Profile]) -> impl Iterator<Item = &Profile> {
    profiles.iter().chain(ALL)
}

/// The built-in profiles. The first whose URLs match counts.
const ALL: &[Profile] = &[
    OPENAI,
    AZURE,
    VERTEX_ANTHROPIC,
    ANTHROPIC,
    VERTEX,
    GEMINI,
    BEDROCK,
    BEDROCK_MANTLE,
    MISTRAL,
    GROQ,
    COHERE,
    DEEPSEEK,
    MOONSHOT,
    XAI,
    OPENROUTER,
    TOGETHER,
    CEREBRAS,
    FIREWORKS,
    MINIMAX,
    SAMBANOVA,
    BASETEN,
    DEEPINFRA,
    HYPERBOLIC,
    NEBIUS,
    AI21,
    DASHSCOPE,
    HUGGINGFACE,
    WRITER,
    VOYAGE,
    ZAI,
    ARK,
    GITHUB_MODELS,
    NVIDIA,
    OLLAMA_CLOUD,
    OLLAMA,
    VLLM,
    LLAMA_CPP,
    COMPATIBLE,
    COMPATIBLE_USAGE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_ignores_scheme_user_and_port() {
        for url in [
            "api.openai.com",
            "https://api.openai.com",
            "https://API.openai.com:443/v1?x=y",
            "https://user:secret@api.openai.com./v1/responses",
        ] {
            assert_eq!(Profile::find(url), OPENAI, "{url}");
        }
        for url in ["", "https://", "https://evil.com/api.openai.com", "api.openai.com.evil.com"] {
            assert_eq!(Profile::find(url), COMPATIBLE, "{url}");
        }
    }

    #[test]
    fn find_recognizes_paths_of_llama_cpp() {
        for path in ["/completion", "/infill", "/gpu-7/completion"] {
            assert_eq!(Profile::find(&format!("http://localhost:8080{path}")), LLAMA_CPP, "{path}");
        }
        assert_eq!(Profile::find("http://localhost:8080/v1/completions"), COMPATIBLE);
    }

    #[test]
    fn headers_of_built_in_profiles_can_be_sent() {
        for profile in Profile::all() {
            let api = profile.api();
            let (name, value) = api.credential(" a-key\n").expect("a key");
            assert!(Api::is_credential(&name) && value.is_sensitive(), "{profile:?}");
            for (name, value) in api.constant_headers {
                assert_eq!(
                    (HeaderName::from_static(name), *value),
                    (name.parse().unwrap(), *value)
                );
            }
            let has_advice = !api.advice.is_empty() || !api.key_variables.is_empty();
            assert!(has_advice || !api.needs_key, "{profile:?}");
        }
    }

    #[test]
    fn key_variables_of_built_in_profiles_are_distinct() {
        // Both endpoints of Bedrock take the same key.
        let apart = ALL.iter().filter(|profile| **profile != BEDROCK_MANTLE);
        let variables = apart.flat_map(|profile| profile.api().key_variables);
        let mut variables: Vec<_> = variables.collect();
        let all = variables.len();
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables.len(), all);
    }

    #[test]
    fn is_at_requires_host_of_the_provider() {
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
        let own = ANTHROPIC.like("gw", "https://gw/a").expect("a profile");
        assert!(own.is_at("https://gw/a/v1") && !own.is_at("https://api.anthropic.com/v1"));
    }
}
