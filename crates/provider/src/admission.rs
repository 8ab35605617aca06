use crate::estimate::tokens;
use crate::prompt_weights::PromptWeights;
use crate::request::{Endpoint, Request};

/// The tokens that a provider charges for a request when it admits it.
///
/// Every request is charged a token for 4 bytes of text, rounded up, and `max_tokens` for each choice.
/// Methods add the rest.
///
/// ```
/// use paceline_provider::{AdmissionCharge, Charge, Profile, Rules};
/// use paceline_limiter::quota::Dimension;
///
/// const CHARGE: AdmissionCharge = AdmissionCharge::new().per_message(4);
/// let acme = Profile::custom(Rules::new("acme").charge(Charge::at_admission(CHARGE)))?;
/// let body = br#"{"max_tokens": 50, "messages": [{"role": "user", "content": "How are you?"}]}"#;
/// let estimate = acme.read_request("/v1/chat/completions", body);
/// // 12 bytes of text are 3 tokens; one message; `max_tokens`.
/// assert_eq!(estimate.cost.amount(&Dimension::Tokens), 3 + 4 + 50);
/// # Ok::<(), paceline_provider::InvalidProfile>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionCharge {
    per_message: u64,
    per_chat: u64,
    per_unbounded_choice: Option<u64>,
    has_media: bool,
    responses: Option<ResponsesCharge>,
}

/// The charge for OpenAI's Responses, beside the estimated prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResponsesCharge {
    per_request: u64,
    functions: u64,
    per_function: u64,
}

impl AdmissionCharge {
    /// Charges text and `max_tokens`.
    pub const fn new() -> Self {
        Self {
            per_message: 0,
            per_chat: 0,
            per_unbounded_choice: None,
            has_media: false,
            responses: None,
        }
    }

    /// Charges this many tokens for each message of a chat.
    #[must_use]
    pub const fn per_message(self, tokens: u64) -> Self {
        Self { per_message: tokens, ..self }
    }

    /// Charges this many tokens for each chat.
    #[must_use]
    pub const fn per_chat(self, tokens: u64) -> Self {
        Self { per_chat: tokens, ..self }
    }

    /// Charges this many tokens for each choice, instead of [`per_chat`](Self::per_chat), if a chat
    /// sets `n` but no `max_tokens`.
    #[must_use]
    pub const fn per_unbounded_choice(self, tokens: u64) -> Self {
        Self { per_unbounded_choice: Some(tokens), ..self }
    }

    /// Charges the media in a chat by the provider's [`PromptWeights::media`].
    #[must_use]
    pub const fn with_media(self) -> Self {
        Self { has_media: true, ..self }
    }

    /// Charges a request to OpenAI's Responses its estimated prompt and `per_request` tokens, and
    /// `functions` more if it defines functions, each of which has `per_function` tokens beside its name, its
    /// description and its parameters. `max_output_tokens` then has no effect.
    #[must_use]
    pub const fn responses_by_prompt(
        self,
        per_request: u64,
        functions: u64,
        per_function: u64,
    ) -> Self {
        Self { responses: Some(ResponsesCharge { per_request, functions, per_function }), ..self }
    }

    /// Returns the charge for a request, in tokens.
    pub(super) fn of(&self, request: &Request, weights: &PromptWeights) -> u64 {
        if let (Endpoint::Responses, Some(responses)) = (request.endpoint, self.responses) {
            let functions = if request.functions > 0 { responses.functions } else { 0 };
            return request
                .responses_tokens(weights, responses.per_function)
                .saturating_add(responses.per_request)
                .saturating_add(functions);
        }
        let bound = if request.endpoint.generates() { request.max_output() } else { None };
        // Tools are free, and so are the calls in an assistant's message.
        let rest = match request.endpoint {
            Endpoint::Chat => self.of_chat(request, weights),
            _ => request.token_ids,
        };
        tokens(request.text).saturating_add(rest).saturating_add(bound.unwrap_or(0))
    }

    /// Returns the charge for a chat beside its text and `max_tokens`.
    fn of_chat(&self, request: &Request, weights: &PromptWeights) -> u64 {
        let chat = match (request.choices, request.max_output(), self.per_unbounded_choice) {
            (Some(choices), None, Some(tokens)) => choices.saturating_mul(tokens),
            _ => self.per_chat,
        };
        let media = if self.has_media { request.media_tokens(&weights.media) } else { 0 };
        request.items.saturating_mul(self.per_message).saturating_add(chat).saturating_add(media)
    }
}

impl Default for AdmissionCharge {
    fn default() -> Self {
        Self::new()
    }
}
