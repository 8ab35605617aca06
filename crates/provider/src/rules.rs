use paceline_limiter::quota::Algorithm;

use crate::api::Api;
use crate::charge::Charge;
use crate::count_tokens::format::CountTokensFormat;
use crate::cut_streams::CutStreams;
use crate::default_quota::DefaultQuota;
use crate::error::ErrorRules;
use crate::limits::LimitHeaders;
use crate::mode::Mode;
use crate::prompt_weights::PromptWeights;
use crate::scanner::{ResponseField, TokenCount};
use crate::unit::Unit;
use crate::utilization::UtilizationHeaders;

/// The rules of one provider, from which [`Profile::custom`](crate::Profile::custom) makes a profile.
///
/// Rules are plain data and can be constants. The built-in profiles are made of the same parts: see
/// [Adding a provider](crate#adding-a-provider).
///
/// ```
/// use paceline_provider::{Api, Profile, ResponseField, Rules, Scanner, TokenCount};
/// use paceline_limiter::quota::Algorithm;
///
/// const ACME: Rules = Rules::new("acme")
///     .urls(&["api.acme.example"])
///     .api(Api::bearer(&["ACME_API_KEY"]).origin("https://api.acme.example"))
///     .algorithm(Algorithm::TokenBucket)
///     .usage(&[
///         ResponseField::count(&["meta", "billed", "prompt"], TokenCount::Input),
///         ResponseField::count(&["meta", "billed", "tokens"], TokenCount::Output),
///     ]);
///
/// let acme = Profile::custom(ACME)?;
/// assert_eq!(Profile::find_among(&[acme], "https://api.acme.example/v1/chat/completions"), acme);
///
/// let mut scanner = Scanner::new(acme, Some("text/event-stream"));
/// scanner.feed(b"data: {\"text\": \"Hi\"}\n\n");
/// scanner.feed(b"data: {\"meta\": {\"billed\": {\"prompt\": 7, \"tokens\": 1}}}\n\n");
/// assert_eq!(scanner.usage().map(|usage| usage.total()), Some(8));
/// # Ok::<(), paceline_provider::InvalidProfile>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub(super) name: &'static str,
    /// The built-in profile from which the rules were derived; `None` for a built-in one.
    pub(super) base: Option<&'static Self>,
    pub(super) urls: &'static [&'static str],
    pub(super) algorithm: Algorithm,
    pub(super) weights: PromptWeights,
    pub(super) charge: Charge,
    pub(super) units: &'static [Unit],
    pub(super) free: &'static [&'static str],
    /// The ends of paths, and the models that requests there run if they name none.
    pub(super) default_models: &'static [(&'static str, &'static str)],
    /// True if the first of `models` answers a request without `model`.
    pub(super) routes_by_list: bool,
    pub(super) limits: LimitHeaders,
    pub(super) modes: &'static [Mode],
    pub(super) utilization: Option<UtilizationHeaders>,
    /// `None` for the fields of all known formats.
    pub(super) usage: Option<&'static [ResponseField]>,
    pub(super) usage_headers: &'static [(&'static str, TokenCount)],
    pub(super) charge_header: Option<&'static str>,
    pub(super) usage_on_request: bool,
    /// True if the provider has several names for one model, as Ollama has.
    pub(super) unifies_models: bool,
    pub(super) cut_streams: CutStreams,
    pub(super) errors: ErrorRules,
    pub(super) count_tokens: Option<CountTokensFormat>,
    pub(super) api: Api,
    pub(super) quotas: &'static [DefaultQuota],
}

impl Rules {
    /// Returns the rules of an OpenAI-compatible server that charges by usage, those of
    /// [`COMPATIBLE_USAGE`](crate::COMPATIBLE_USAGE), under another name.
    ///
    /// The name may have up to 64 letters, digits, `-`, `_` and `.`.
    pub const fn new(name: &'static str) -> Self {
        Self { base: Some(&COMPATIBLE_USAGE), name, ..COMPATIBLE_USAGE }
    }

    /// Returns rules without a base, for a built-in profile.
    pub(super) const fn built_in(name: &'static str) -> Self {
        Self { name, ..COMPATIBLE_USAGE }
    }

    /// Sets where the provider is found: globs over a host (`*.acme.example`), a host and a path
    /// (`acme.example/llm/*`) or, for any host, a path (`*/v1/messages`).
    #[must_use]
    pub const fn urls(self, urls: &'static [&'static str]) -> Self {
        Self { urls, ..self }
    }

    /// Sets the algorithm of limits that don't state one. Default: a sliding window, which is safe
    /// against every other algorithm.
    #[must_use]
    pub const fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Sets how the tokens of a prompt are estimated.
    #[must_use]
    pub const fn weights(self, weights: PromptWeights) -> Self {
        Self { weights, ..self }
    }

    /// Sets how and when requests are charged. Default: [`Charge::by_usage`].
    #[must_use]
    pub const fn charge(self, charge: Charge) -> Self {
        Self { charge, ..self }
    }

    /// Sets the units other than tokens that the provider limits. Default: none.
    #[must_use]
    pub const fn units(self, units: &'static [Unit]) -> Self {
        Self { units, ..self }
    }

    /// Adds requests that the provider doesn't bill to those that no known provider bills (`GET`, `DELETE` and `OPTIONS`
    /// without a body, files, token counts and such). Where spending is limited, other requests need a price.
    ///
    /// Each is a method and a path below the version (`POST /moderations` is `/v1/moderations`), in which `*` in a
    /// segment is any text and `/**` at the end any further segments. `GET` includes `HEAD`.
    #[must_use]
    pub const fn free(self, requests: &'static [&'static str]) -> Self {
        Self { free: requests, ..self }
    }

    /// Sets the models that requests run if they name none, each with the end of the path (`/moderations`), in lower
    /// case. Default: a request has to name its model.
    #[must_use]
    pub const fn default_models(self, models: &'static [(&'static str, &'static str)]) -> Self {
        Self { default_models: models, ..self }
    }

    /// States that a request without `model` runs the first one of its list `models`. Default: it doesn't.
    #[must_use]
    pub const fn routing_by_list(self) -> Self {
        Self { routes_by_list: true, ..self }
    }

    /// Sets which response headers state limits. Default: [`LimitHeaders::COMPATIBLE`].
    #[must_use]
    pub const fn limits(self, limits: LimitHeaders) -> Self {
        Self { limits, ..self }
    }

    /// Sets the modes whose requests count to limits of their own. Default: none.
    #[must_use]
    pub const fn modes(self, modes: &'static [Mode]) -> Self {
        Self { modes, ..self }
    }

    /// Sets which response headers state the used part of an account's windows. Default: none.
    #[must_use]
    pub const fn utilization(self, headers: UtilizationHeaders) -> Self {
        Self { utilization: Some(headers), ..self }
    }

    /// Sets which fields of a response state its usage, in a JSON body as in the events of a stream.
    /// No others are read. Default: the fields of all known formats.
    #[must_use]
    pub const fn usage(self, fields: &'static [ResponseField]) -> Self {
        Self { usage: Some(fields), ..self }
    }

    /// Sets which response headers, in lower case, state token counts. Counts in the body replace
    /// them.
    #[must_use]
    pub const fn usage_headers(self, headers: &'static [(&'static str, TokenCount)]) -> Self {
        Self { usage_headers: headers, ..self }
    }

    /// Sets the response header, in lower case, that states how many tokens were charged to the
    /// total-token limit.
    #[must_use]
    pub const fn charge_header(self, header: &'static str) -> Self {
        Self { charge_header: Some(header), ..self }
    }

    /// States that streams of chats have a usage only if the request sets `stream_options.include_usage`, which
    /// the provider accepts. The proxy then sets it. Default: it doesn't.
    #[must_use]
    pub const fn usage_on_request(self) -> Self {
        Self { usage_on_request: true, ..self }
    }

    /// States that the provider reads names of models as Ollama does: see
    /// [`Estimate::model`](crate::Estimate::model). Default: it doesn't.
    #[must_use]
    pub const fn unifying_models(self) -> Self {
        Self { unifies_models: true, ..self }
    }

    /// Sets what is charged for a stream that is cut off. Default: the reservation.
    #[must_use]
    pub const fn cut_streams(self, cut_streams: CutStreams) -> Self {
        Self { cut_streams, ..self }
    }

    /// Sets how errors are classified, beyond the codes that are known for all providers.
    #[must_use]
    pub const fn errors(self, errors: ErrorRules) -> Self {
        Self { errors, ..self }
    }

    /// Sets the format of the provider's endpoint that counts the tokens of a prompt. Default: there
    /// is no such endpoint.
    #[must_use]
    pub const fn count_tokens(self, format: CountTokensFormat) -> Self {
        Self { count_tokens: Some(format), ..self }
    }

    /// Sets how the API is called. Default: as OpenAI's, with an optional key.
    #[must_use]
    pub const fn api(self, api: Api) -> Self {
        Self { api, ..self }
    }

    /// Sets the quotas that an account has by default.
    #[must_use]
    pub const fn quotas(self, quotas: &'static [DefaultQuota]) -> Self {
        Self { quotas, ..self }
    }
}

/// The rules of [`COMPATIBLE_USAGE`](crate::COMPATIBLE_USAGE), which are the defaults of all profiles.
pub(super) const COMPATIBLE_USAGE: Rules = Rules {
    name: "compatible-usage",
    base: None,
    urls: &[],
    algorithm: Algorithm::SlidingWindow,
    weights: PromptWeights::GENEROUS,
    charge: Charge::by_usage(),
    units: &[],
    free: &[],
    default_models: &[],
    routes_by_list: false,
    limits: LimitHeaders::COMPATIBLE,
    modes: &[],
    utilization: None,
    usage: None,
    usage_headers: &[],
    charge_header: None,
    usage_on_request: false,
    unifies_models: false,
    cut_streams: CutStreams::kept(),
    errors: ErrorRules::new(),
    count_tokens: None,
    api: Api::without_key(),
    quotas: &[],
};
