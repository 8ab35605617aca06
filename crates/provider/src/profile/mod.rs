//! The profile of a provider.

mod limit_rules;
mod request;
mod response;

use paceline_limiter::quota::{Algorithm, Dimension, SettleAt};

pub use response::LONGEST_DELAY;

use std::fmt;

use crate::alias::Alias;
use crate::api::Api;
use crate::count_tokens::format::CountTokensFormat;
use crate::custom_rules::CustomRules;
use crate::default_quota::{DefaultQuota, Defaults};
use crate::invalid_profile::InvalidProfile;
use crate::request::Vocabularies;
use crate::rules::Rules;
use crate::scanner::FieldTable;
#[cfg(feature = "tokenizer")]
use crate::tokenizer;

/// The rules of one provider: how its requests are charged and how its responses are read.
///
/// A profile is small and cheap to copy. It is built in, [like](Self::like) another one under a name and
/// a base URL of its own, or made of [custom](Self::custom) [`Rules`].
///
/// ```
/// use paceline_provider::{COMPATIBLE, OPENAI, Profile};
/// assert_eq!(Profile::find("https://api.openai.com/v1/chat/completions"), OPENAI);
/// assert_eq!(Profile::find("http://gpu-7:8000/v1"), COMPATIBLE);
/// assert_eq!(Profile::named("openai"), Some(OPENAI));
/// ```
#[derive(Clone, Copy)]
pub struct Profile {
    rules: &'static Rules,
    /// The fields that state usage; `None` for those of all known formats.
    fields: Option<&'static FieldTable>,
    /// Name and base URL, if the profile was made by `like`.
    alias: Option<&'static Alias>,
    /// Set if texts are counted exactly.
    vocabularies: Option<Vocabularies>,
}

impl Profile {
    pub(super) const fn new(rules: &'static Rules) -> Self {
        Self { rules, fields: None, alias: None, vocabularies: None }
    }

    /// Returns a profile that counts the texts of prompts exactly, for models whose vocabulary ships
    /// with the crate: OpenAI's (`gpt-3.5` and up, `o1` and up, `gpt-oss`, embeddings), on every host.
    /// Other models are estimated as before.
    ///
    /// This changes input tokens, and the total tokens where the provider charges the tokens that it
    /// reads, as for OpenAI's Responses. OpenAI's chat limit still counts characters. Tools, images
    /// and files stay estimates.
    ///
    /// Speed: about 30 MB of text a second (reading alone: 4 GB), on the calling task. So only the
    /// first 128 KiB of text in a request are counted (about 32,000 tokens, in 4 ms), and the first
    /// 256 bytes of a word; the rest is extrapolated by its bytes. The first call in a process loads
    /// the vocabularies, which takes 0.3 s: call it at startup.
    ///
    /// ```
    /// use paceline_provider::OPENAI;
    /// use paceline_limiter::quota::Dimension;
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

    /// Returns true if the texts of prompts to this model are counted exactly: the profile was made by
    /// `with_tokenizer`, and the model's vocabulary ships with the crate.
    pub fn tokenizes(&self, model: &str) -> bool {
        self.vocabularies.is_some_and(|vocabulary| vocabulary(model).is_some())
    }

    /// Returns a profile of these rules, whose name no built-in profile has.
    ///
    /// The rules are kept for the life of the process, once.
    ///
    /// # Errors
    /// [`InvalidProfile`] for a name that a built-in profile has or that has other characters than
    /// letters, digits, `-`, `_` and `.`, and for a rule that can't be applied.
    pub fn custom(rules: Rules) -> Result<Self, InvalidProfile> {
        if let Some(built_in) = Self::named(rules.name) {
            return Err(InvalidProfile::BuiltIn { name: built_in.name() });
        }
        let CustomRules { rules, fields } = CustomRules::keep(rules)?;
        Ok(Self { fields: fields.as_ref(), ..Self::new(rules) })
    }

    /// Returns the rules of this profile under another name, to change some and make a
    /// [custom](Self::custom) profile. They have no URLs, no address, no key variables and no default
    /// quotas.
    ///
    /// ```
    /// use paceline_provider::{ANTHROPIC, Api, Profile};
    ///
    /// let api = Api::bearer(&["ACME_API_KEY"]).endpoint("/v1/messages");
    /// let acme = Profile::custom(ANTHROPIC.rules_as("acme").urls(&["*.acme.example"]).api(api))?;
    /// assert_eq!((acme.name(), acme.built_in()), ("acme", ANTHROPIC));
    /// # Ok::<(), paceline_provider::InvalidProfile>(())
    /// ```
    pub const fn rules_as(&self, name: &'static str) -> Rules {
        let base = match self.rules.base {
            Some(base) => base,
            None => self.rules,
        };
        let api = Api { origin: None, key_variables: &[], ..self.rules.api };
        Rules { name, base: Some(base), urls: &[], api, quotas: &[], ..*self.rules }
    }

    /// Returns a profile with the rules of this one, under a name and at a base URL of its own: a
    /// local server, a gateway, a second account. It has no [default quotas](Self::quotas), unless it has
    /// the name of this profile and is therefore the same provider at another address. Without a base
    /// URL it is found only by its name.
    ///
    /// Name and base URL are kept for the life of the process, once for each pair.
    ///
    /// ```
    /// use paceline_provider::{OPENAI, Profile};
    /// let vllm = OPENAI.like("my-vllm", "http://gpu-7:8000")?;
    /// assert_eq!((vllm.name(), vllm.base_url()), ("my-vllm", Some("http://gpu-7:8000")));
    /// assert_eq!(Profile::find_among(&[vllm], "http://gpu-7:8000/v1/embeddings"), vllm);
    /// # Ok::<(), paceline_provider::InvalidProfile>(())
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
            Some(built_in) if built_in.rules != self.rules => {
                return Err(InvalidProfile::BuiltIn { name: built_in.name() });
            }
            Some(built_in) => built_in.name(),
            None => name,
        };
        Ok(Self { alias: Some(Alias::keep(name, base_url.into())?), ..self })
    }

    /// Returns the name in configuration: `openai`, `anthropic`, `llama-cpp`, `compatible-usage`.
    pub fn name(&self) -> &'static str {
        self.alias.map_or(self.rules.name, |alias| &alias.name)
    }

    /// Returns the built-in profile that this one is like or was derived from: itself if it is built
    /// in, [`COMPATIBLE_USAGE`](crate::COMPATIBLE_USAGE) for [`Rules::new`].
    pub fn built_in(self) -> Self {
        match self.rules.base {
            Some(base) => Self { vocabularies: self.vocabularies, ..Self::new(base) },
            None => Self { alias: None, ..self },
        }
    }

    /// Returns the base URL given to [`like`](Self::like), without a trailing slash; `None` for other
    /// profiles, which may be served anywhere.
    pub fn base_url(&self) -> Option<&'static str> {
        self.alias?.base_url.as_deref()
    }

    /// Returns the names of the modes whose requests count to limits of their own.
    pub(crate) fn modes(&self) -> impl Iterator<Item = &'static str> {
        self.rules.modes.iter().map(|mode| mode.name)
    }

    /// Returns how the API is called. For a profile made by [`like`](Self::like) the address is its
    /// [`base_url`](Self::base_url).
    pub fn api(&self) -> &'static Api {
        &self.rules.api
    }

    /// Returns the environment variables that hold the key; the first that is set counts.
    ///
    /// The variables are those of the provider's own SDKs. A profile with a name of its own has one that
    /// is derived from the name, so that another provider's key is never sent to it: `MY_VLLM_API_KEY`
    /// for `my-vllm`.
    ///
    /// ```
    /// use paceline_provider::OPENAI;
    ///
    /// assert_eq!(OPENAI.key_variables(), ["OPENAI_API_KEY"]);
    /// let own = OPENAI.like("my-vllm", "http://gpu-7:8000")?;
    /// assert_eq!(own.key_variables(), ["MY_VLLM_API_KEY"]);
    /// # Ok::<(), paceline_provider::InvalidProfile>(())
    /// ```
    pub fn key_variables(&self) -> Vec<String> {
        let own = self.api().key_variables;
        if self.has_name_of_rules() && (self.rules.base.is_none() || !own.is_empty()) {
            return own.iter().map(|&name| name.to_owned()).collect();
        }
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = self.name().to_ascii_uppercase().chars().map(letter).collect();
        vec![format!("{name}_API_KEY")]
    }

    /// Returns the algorithm of limits that don't state one.
    pub fn algorithm(&self) -> Algorithm {
        self.rules.algorithm
    }

    /// Returns when the charge in this dimension becomes final.
    pub fn settles(&self, dimension: &Dimension) -> SettleAt {
        self.rules.charge.settles(dimension)
    }

    /// Returns the dimensions whose charge is final before the response ends.
    pub(crate) fn settled_early(&self) -> impl Iterator<Item = Dimension> {
        [Dimension::InputTokens, Dimension::Tokens, Dimension::OutputTokens]
            .into_iter()
            .filter(|dimension| self.settles(dimension) == SettleAt::FirstUsage)
    }

    /// Returns the quotas that an account has by default; none for a profile made by
    /// [`like`](Self::like) under a name of its own.
    pub fn quotas(&self) -> &'static [DefaultQuota] {
        match self.defaults() {
            Some(defaults) => &defaults.quotas,
            None if self.has_name_of_rules() => self.rules.quotas,
            None => &[],
        }
    }

    pub(super) fn defaults(&self) -> Option<&'static Defaults> {
        Defaults::of(self.name())
    }

    /// Returns the format of the endpoint that counts tokens; `None` if there is none, or if the
    /// profile is only like a provider that has one.
    pub(super) fn count_tokens_format(&self) -> Option<CountTokensFormat> {
        self.rules.count_tokens.filter(|_| self.has_name_of_rules())
    }

    /// Returns the rules.
    pub(super) fn rules(&self) -> &'static Rules {
        self.rules
    }

    /// Returns true unless the profile has another name than its rules.
    pub(super) fn has_name_of_rules(&self) -> bool {
        self.name() == self.rules.name
    }

    /// Returns true if the profile was made of [custom](Self::custom) rules.
    pub(super) fn is_custom(&self) -> bool {
        self.alias.is_none() && self.rules.base.is_some()
    }

    /// Returns the fields that state usage; `None` for those of all known formats.
    pub(super) fn fields(&self) -> Option<&'static FieldTable> {
        self.fields
    }
}

impl PartialEq for Profile {
    /// Compares rules, name and base URL, not whether texts are counted exactly.
    fn eq(&self, other: &Self) -> bool {
        let has_same_rules = std::ptr::eq(self.rules, other.rules) || self.rules == other.rules;
        has_same_rules && self.alias == other.alias
    }
}

impl Eq for Profile {}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("Profile");
        tuple.field(&self.name());
        if self.alias.is_some() {
            tuple.field(&format_args!("like {:?}", self.rules.name));
        }
        if let Some(base_url) = self.base_url() {
            tuple.field(&base_url);
        }
        tuple.finish()
    }
}
