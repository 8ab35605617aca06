use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::custom::Custom;
use super::default_quota::{DefaultQuota, Defaults};
#[cfg(feature = "requests")]
use super::request::UnreadableRequest;
use super::request::{Request, Vocabularies};
use super::rules::Rules;
use super::scanner::Counts;
#[cfg(feature = "tokenizer")]
use super::tokenizer;
use super::{
    ANTHROPIC, AZURE, ApiError, BEDROCK, CEREBRAS, COHERE, COMPATIBLE, COMPATIBLE_USAGE, Class,
    DEEPSEEK, Estimate, GEMINI, GROQ, HUGGINGFACE, InvalidProfile, LLAMA_CPP, LimitReadings,
    MISTRAL, OLLAMA, OPENAI, OPENROUTER, TOGETHER, UnknownProvider, VERTEX, VERTEX_ANTHROPIC, VLLM,
    VOYAGE, WRITER, class, error, place,
};
use crate::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};
use crate::timestamp::Timestamp;

/// One provider's rules: how its requests are charged, and what its responses say.
///
/// ```
/// use tollgate::provider::{COMPATIBLE, OPENAI, Profile};
/// assert_eq!(Profile::find("https://api.openai.com/v1/chat/completions"), OPENAI);
/// assert_eq!(Profile::find("http://gpu-7:8000/v1"), COMPATIBLE);
/// assert_eq!(Profile::named("openai"), Some(OPENAI));
/// ```
#[derive(Clone, Copy)]
pub struct Profile {
    rules: &'static Rules,
    /// What it has of its own, where it isn't built in.
    custom: Option<&'static Custom>,
    /// Set where texts are counted exactly.
    vocabularies: Option<Vocabularies>,
}

impl Profile {
    pub(super) const fn new(rules: &'static Rules) -> Self {
        Self { rules, custom: None, vocabularies: None }
    }

    /// Counts the texts of prompts exactly, where it was by characters, for models whose vocabulary
    /// is at hand: OpenAI's (`gpt-3.5` and up, `o1` and up, `gpt-oss`, embeddings), wherever they are
    /// served. Other models are estimated as before.
    ///
    /// What a provider charges by rules of its own stays as it is: OpenAI's chat limit goes by
    /// characters. The input tokens change, the tokens where the provider charges what it reads, and
    /// OpenAI's Responses. Tools, images and files stay estimates.
    ///
    /// Speed: some 30 MB of text a second, where reading alone takes 4 GB, and on the task that calls.
    /// So the first 128 KiB of text in a request are counted (some 32,000 tokens, in 4 ms), and of a
    /// word the first 256 bytes; what is left has as many tokens for its bytes. The first call in a
    /// process reads the vocabularies, for 0.3 s: make the profile at the start.
    ///
    /// ```
    /// use tollgate::provider::OPENAI;
    /// use tollgate::quota::Dimension;
    /// let body = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "速率限制"}]}"#;
    /// let estimate = OPENAI.with_tokenizer().read_request("/v1/chat/completions", body.as_bytes());
    /// // 3 tokens of text, 4 around a message, 3 to begin the answer.
    /// assert_eq!(estimate.cost.amount(&Dimension::InputTokens), 10);
    /// ```
    #[cfg(feature = "tokenizer")]
    #[must_use]
    pub fn with_tokenizer(self) -> Self {
        tokenizer::load();
        Self { vocabularies: Some(tokenizer::vocabulary), ..self }
    }

    /// Whether the texts of prompts to this model are counted exactly: the profile was made
    /// `with_tokenizer`, and the model's vocabulary is at hand.
    pub fn tokenizes(&self, model: &str) -> bool {
        self.vocabularies.is_some_and(|vocabulary| vocabulary(model).is_some())
    }

    /// A provider that speaks, counts and charges as this one, under a name and at a base URL of its
    /// own: a server on one's own machine, a gateway, a second account. Its quotas are the user's to
    /// give: it has no [defaults](Self::quotas). Under the name of this profile it is the same
    /// provider, reached elsewhere, and keeps them. Without a base URL it goes by its name alone.
    ///
    /// Name and base URL are kept for as long as the process runs, once for each pair.
    ///
    /// ```
    /// use tollgate::provider::{OPENAI, Profile};
    /// let vllm = OPENAI.like("my-vllm", "http://gpu-7:8000")?;
    /// assert_eq!((vllm.name(), vllm.base_url()), ("my-vllm", Some("http://gpu-7:8000")));
    /// assert_eq!(Profile::find_among(&[vllm], "http://gpu-7:8000/v1/embeddings"), vllm);
    /// # Ok::<(), tollgate::provider::InvalidProfile>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidProfile`] for a name that another built-in profile has, or that has other characters
    /// than letters, digits, `-`, `_` and `.`; and for a base URL that isn't one, or that holds a
    /// user name, a query or a fragment.
    pub fn like<'a>(
        self,
        name: &str,
        base_url: impl Into<Option<&'a str>>,
    ) -> Result<Self, InvalidProfile> {
        let name = match Self::named(name) {
            Some(built_in) if built_in != self.built_in() => {
                return Err(InvalidProfile::BuiltIn { name: built_in.name() });
            }
            Some(built_in) => built_in.name(),
            None => name,
        };
        Ok(Self { custom: Some(Custom::keep(name, base_url.into())?), ..self })
    }

    /// The name in configuration: `openai`, `anthropic`, `llama-cpp`, `compatible-usage`.
    pub fn name(&self) -> &'static str {
        self.custom.map_or(self.rules.name, |custom| &custom.name)
    }

    /// The built-in profile whose rules these are: itself, unless it was made by
    /// [`like`](Self::like).
    pub fn built_in(self) -> Self {
        Self { custom: None, ..self }
    }

    /// Where a profile made by [`like`](Self::like) is served, without a slash at its end; `None`
    /// for built-in ones, which may be served anywhere.
    pub fn base_url(&self) -> Option<&'static str> {
        self.custom?.base_url.as_deref()
    }

    /// The built-in profile of this name; ASCII case does not matter.
    ///
    /// [`parse`](str::parse) does the same, and says which there are where there is none.
    pub fn named(name: &str) -> Option<Self> {
        known(&[]).find(|profile| profile.is_named(name)).copied()
    }

    /// The profile of this name among these, else the built-in one; ASCII case does not matter.
    ///
    /// # Errors
    /// [`UnknownProvider`] if neither has it; it names those that there are.
    pub fn named_among(profiles: &[Self], name: &str) -> Result<Self, UnknownProvider> {
        let found = known(profiles).find(|profile| profile.is_named(name));
        found.copied().ok_or_else(|| UnknownProvider::new(name, known(profiles)))
    }

    /// The built-in profiles.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The built-in profile of the provider at this base URL, request URL or host.
    ///
    /// By the host where it is a provider's; else by what only one provider's paths look like
    /// (`/v1/messages`, `/model/NAME/converse`, `...:generateContent`), or by a first segment of the
    /// path that names one, as gateways have it (`/groq/openai/v1/...`). [`COMPATIBLE`] where
    /// nothing tells.
    pub fn find(url: &str) -> Self {
        Self::find_among(&[], url)
    }

    /// The same among these profiles too: the URL is theirs if it lies at or below their
    /// [base URL](Self::base_url) (the longest, and of equals the first), or behind a gateway if its
    /// first segment names them. A base URL counts before the URLs of built-in profiles.
    pub fn find_among(profiles: &[Self], url: &str) -> Self {
        let place = place::Place::of(url);
        let by = |owns: &dyn Fn(&str) -> bool| {
            ALL.iter().find(|profile| profile.rules.urls.iter().any(|url| owns(url))).copied()
        };
        let segment = || {
            let name = place.first_segment()?;
            known(profiles).find(|profile| profile.is_named(name)).copied()
        };
        Self::at(profiles, &place)
            .or_else(|| by(&|url: &str| place.is_host(url)))
            .or_else(|| by(&|url: &str| place.is_path(url)))
            .or_else(segment)
            .unwrap_or(COMPATIBLE)
    }

    /// The profile with the longest base URL that `place` lies below.
    fn at(profiles: &[Self], place: &place::Place<'_>) -> Option<Self> {
        let below = |profile: &&Self| {
            profile.base_url().is_some_and(|base| place.is_below(&place::Place::of(base)))
        };
        let length = |profile: &&Self| profile.base_url().map(str::len);
        profiles.iter().rev().filter(below).max_by_key(length).copied()
    }

    /// How a limit is counted that names no algorithm of its own.
    pub fn algorithm(&self) -> Algorithm {
        self.rules.algorithm
    }

    /// When the charge in this dimension becomes final.
    pub fn settles(&self, dimension: &Dimension) -> SettleAt {
        (self.rules.settles)(dimension)
    }

    /// The dimensions whose charge is final before the response ends.
    #[cfg(feature = "tower")]
    pub(crate) fn settled_early(&self) -> impl Iterator<Item = Dimension> {
        [Dimension::InputTokens, Dimension::Tokens, Dimension::OutputTokens]
            .into_iter()
            .filter(|dimension| self.settles(dimension) == SettleAt::FirstUsage)
    }

    /// The quotas that an account has unless the user says otherwise; none for a profile with a name
    /// of its own.
    pub fn quotas(&self) -> &'static [DefaultQuota] {
        self.defaults().map_or(&[], |defaults| &defaults.quotas)
    }

    pub(super) fn defaults(&self) -> Option<&'static Defaults> {
        Defaults::of(self.name())
    }

    /// What a request is and what it costs. `path` is the URL's path (a whole URL will do), `body`
    /// the whole body. Needs the feature `requests`, as its images are measured.
    #[cfg(feature = "requests")]
    pub fn read_request(&self, path: &str, body: &[u8]) -> Estimate {
        match Request::read(path, body) {
            Ok(request) => self.estimate(request, body),
            Err(_) => Request::estimate_unread(path, body),
        }
    }

    /// The same where the body is not in memory: by its size in bytes, and the model that the path names.
    pub fn read_head(&self, path: &str, size: u64) -> Estimate {
        Request::estimate_of_size(path, size, None)
    }

    /// The same as [`read_request`](Self::read_request), and why the request can't be read for certain,
    /// if it can't: where two servers might see two models in it, or more than one size. For who charges
    /// requests that others have written.
    ///
    /// Read are JSON objects (RFC 8259) in UTF-8, forms (RFC 7578) and pairs, not compressed. The model
    /// is that of the path, else the field `model` or `model_id` at the root, which must not stand there
    /// twice with different values. Paths whose requests have no model, such as those of files, are
    /// never refused.
    ///
    /// ```
    /// use http::HeaderMap;
    /// use tollgate::provider::OPENAI;
    /// let read = |body: &str| {
    ///     OPENAI.read_request_strictly("/v1/responses", &HeaderMap::new(), body.as_bytes())
    /// };
    /// let (estimate, unreadable) = read(r#"{"model": "gpt-4o", "input": "Hi"}"#);
    /// assert_eq!((estimate.model.as_deref(), unreadable), (Some("gpt-4o"), None));
    /// let (_, unreadable) = read(r#"{"model": "gpt-4o", "model": "gpt-4o-mini"}"#);
    /// assert_eq!(unreadable.unwrap().part(), "model");
    /// ```
    #[cfg(feature = "requests")]
    pub fn read_request_strictly(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> (Estimate, Option<UnreadableRequest>) {
        match Request::read(path, body) {
            Ok(request) => {
                let doubt = request.doubt(path, headers, body);
                (self.estimate(request, body), doubt)
            }
            Err(json) => Request::estimate_form(path, headers, body, json),
        }
    }

    #[cfg(feature = "requests")]
    fn estimate(&self, request: Request, body: &[u8]) -> Estimate {
        let request = match self.vocabularies {
            Some(vocabularies) => request.counted(body, vocabularies),
            None => request,
        };
        let reserved = (self.rules.reserve)(&request);
        request.into_estimate(reserved)
    }

    /// What each dimension is charged by this usage, before the estimate's [`Terms`](super::Terms)
    /// are applied.
    #[must_use]
    pub fn charge(&self, reserved: &Cost, usage: &Usage) -> Cost {
        (self.rules.charge)(reserved, usage)
    }

    /// What the head of a response says that the provider charged to its token limit, whatever the
    /// usage; `None` with providers that don't say. It is final: it takes the place of the
    /// `Tokens` of [`charge`](Self::charge).
    pub fn charged_in_head(&self, headers: &HeaderMap) -> Option<u64> {
        (self.rules.charged_in_head)(headers)
    }

    /// What the headers say of limits and of what remains of them; empty where they say nothing.
    /// Resets that are times are measured from the response's `date`.
    pub fn limits(&self, headers: &HeaderMap) -> LimitReadings {
        (self.rules.limits)(headers)
    }

    /// How long the provider asks to wait before the next try, at most
    /// [`LONGEST_DELAY`](super::LONGEST_DELAY).
    ///
    /// In the order of the official SDKs: `retry-after-ms`, then `retry-after` in seconds or as an
    /// HTTP date; then OpenRouter's `x-ratelimit-reset`, Gemini's `retryDelay` in the body, and texts
    /// as "try again in 6m0s" and "retry after 6 seconds". A time that has passed is zero. Times are
    /// measured from the response's `date`; without one from `now`. A success may carry a delay too (Anthropic): that is no refusal.
    pub fn retry_delay(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Option<Duration> {
        (self.rules.delay)(headers, body, now)
    }

    /// What a response's status, headers and error body mean for the request. The body of a success
    /// is not read: an error in it is the [`Scanner`](super::Scanner)'s to find, and whether it is an
    /// answer at all [`InvalidAnswer::check`](super::InvalidAnswer::check) tells.
    pub fn classify(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Class {
        (self.rules.classify)(status, headers, body)
    }

    /// What an error in the body of a 200 means for the request: [`Class::Transient`] unless the error
    /// says that the request or the account is at fault, or that a long limit is reached.
    pub fn classify_in_band(&self, error: &ApiError) -> Class {
        class::of_error(error)
    }

    /// Whether every other request of the account would fail the same way, so that a run may as
    /// well stop: 401, 402, no credit left, a spending limit reached, a key that was revoked.
    pub fn is_account_wide(&self, status: StatusCode, error: &ApiError) -> bool {
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::PAYMENT_REQUIRED)
            || error::signs::is_account_wide(error)
    }

    /// The name of the built-in profile whose rules these are.
    pub(super) fn rules_name(&self) -> &'static str {
        self.rules.name
    }

    /// Whether a place is at a host of the provider.
    pub(super) fn has_host(&self, place: &place::Place<'_>) -> bool {
        self.rules.urls.iter().any(|url| place.is_host(url))
    }

    fn is_named(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    pub(super) fn counts_in_head(&self, headers: &HeaderMap) -> Counts {
        (self.rules.counts_in_head)(headers)
    }
}

impl FromStr for Profile {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        Self::named_among(&[], name)
    }
}

impl PartialEq for Profile {
    /// The same rules, name and base URL; who counts the texts plays no part.
    fn eq(&self, other: &Self) -> bool {
        self.rules.name == other.rules.name && self.custom == other.custom
    }
}

impl Eq for Profile {}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("Profile");
        tuple.field(&self.name());
        if self.custom.is_some() {
            tuple.field(&format_args!("like {:?}", self.rules.name));
        }
        if let Some(base_url) = self.base_url() {
            tuple.field(&base_url);
        }
        tuple.finish()
    }
}

/// These, and the built-in ones.
fn known(profiles: &[Profile]) -> impl Iterator<Item = &Profile> {
    profiles.iter().chain(ALL)
}

/// Where two would own a URL, the first does.
const ALL: &[Profile] = &[
    OPENAI,
    AZURE,
    VERTEX_ANTHROPIC,
    ANTHROPIC,
    VERTEX,
    GEMINI,
    BEDROCK,
    MISTRAL,
    GROQ,
    COHERE,
    DEEPSEEK,
    OPENROUTER,
    TOGETHER,
    CEREBRAS,
    HUGGINGFACE,
    WRITER,
    VOYAGE,
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
    fn a_host_is_found_behind_scheme_user_and_port() {
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
    fn llama_cpp_is_found_by_its_own_paths() {
        for path in ["/completion", "/infill", "/gpu-7/completion"] {
            assert_eq!(Profile::find(&format!("http://localhost:8080{path}")), LLAMA_CPP, "{path}");
        }
        assert_eq!(Profile::find("http://localhost:8080/v1/completions"), COMPATIBLE);
    }

    #[cfg(feature = "requests")]
    #[test]
    fn a_sound_that_is_repeated_by_its_id_is_nothing() {
        let cost = |audio: &str| {
            let body = format!(r#"{{"messages":[{{"role":"assistant","audio":{audio}}}]}}"#);
            OPENAI.read_request("/v1/chat/completions", body.as_bytes()).cost
        };
        let nothing = cost("{}");
        assert_eq!(cost(r#"{"id":"audio_abc"}"#), nothing);
        assert_eq!(nothing.amount(&Dimension::Tokens), 2);
        assert_ne!(cost(r#"{"data":"UklGRg=="}"#), nothing);
        assert_ne!(cost(r#"{"url":"https://host/a.wav"}"#), nothing);
    }
}
