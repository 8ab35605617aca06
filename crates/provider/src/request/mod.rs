//! Reads requests in every known format.

mod ambiguity;
mod amounts;
mod body;
mod counter;
mod default_model;
mod deferred;
mod definition;
mod endpoint;
mod flac;
mod form;
mod key;
mod medium;
mod most;
mod multipart;
mod named;
mod parameters;
mod pixels;
mod prompt;
mod reasoning;
mod size;
mod surrogates;
mod tools;
mod unreadable;
mod walk;
mod wav;
mod without_model;
mod words;

use compact_str::CompactString;
use paceline_limiter::seam;

use counter::Counter;
pub(super) use counter::Vocabulary;
pub(super) use default_model::{documented_default, missing_model, runs_named_model};
use deferred::DeferredTools;
pub(super) use endpoint::Endpoint;
pub(super) use endpoint::plain as normalized_path;
pub(super) use medium::{Medium, MediumKind};
use named::Named;
pub use unreadable::UnreadableRequest;
use words::Words;

use crate::charge::{CachedPrompt, Reserved};
use crate::media::MediaTokens;
use crate::mode::NamedModes;
use crate::prompt_weights::PromptWeights;
use crate::{Estimate, Operation};

/// A function that returns the vocabulary of a model, if it ships with the crate.
pub(super) type Vocabularies = fn(&str) -> Option<&'static dyn Vocabulary>;

/// The model of a request and the counts of its parts.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) model: Option<CompactString>,
    /// True if the path names the model.
    is_named_by_path: bool,
    /// True if the path is known to run a model.
    has_known_path: bool,
    /// The models that the body names.
    named: Named,
    /// The models that may answer instead.
    fallbacks: Vec<CompactString>,
    /// The size of the body, in bytes.
    body: u64,
    pub(super) stream: bool,
    /// The provider generates on after the connection is closed.
    pub(super) background: bool,
    pub(super) modes: NamedModes,
    /// The bytes of UTF-8 in the contents of messages, the prompt, the input and the instructions.
    pub(super) text: u64,
    /// Messages, and the other items of a conversation.
    pub(super) items: u64,
    /// Texts of a prompt outside a conversation.
    texts: u64,
    /// Lists of token ids in such a prompt.
    token_lists: u64,
    /// The number of tokens that were sent as ids (embeddings, completions).
    pub(super) token_ids: u64,
    /// Tool calls in the conversation.
    pub(super) calls: u64,
    /// The bytes of the names and arguments of calls.
    pub(super) call_text: u64,
    /// Names of participants in a chat.
    names: u64,
    pub(super) media: Vec<Medium>,
    /// Functions among the tools.
    pub(super) functions: u64,
    /// Web searches among the tools.
    pub(super) searches: u64,
    /// Other tools that the provider runs itself.
    pub(super) built_in: u64,
    /// The bytes of compact JSON of the functions and of the schema of the answer.
    pub(super) schema: u64,
    /// Whether the request asks for reasoning (true) or turns it off; `None` if it says nothing of it.
    pub(super) reasons: Option<bool>,
    /// `n` or `best_of`, the larger.
    pub(super) choices: Option<u64>,
    /// `max_tokens`, `max_completion_tokens` or `max_output_tokens`, of one choice.
    bound: Option<u64>,
    /// True if content that the provider keeps becomes part of the prompt.
    has_kept_content: bool,
    /// True if the provider keeps the prompt, which may name another model.
    has_kept_prompt: bool,
    /// True if the body has `messages`, which identifies a chat if the path doesn't.
    has_messages: bool,
    /// Counts the texts, if the model's vocabulary is known.
    counter: Option<Counter>,
    /// Counts the texts of a request to OpenAI's Responses by their words.
    words: Option<Counter>,
    /// The estimated tokens of the definitions of functions in a request to Responses.
    definitions: u64,
    /// Tools that are loaded in the course of the conversation.
    deferred: DeferredTools,
    /// The estimated tokens of reasoning since the last message of the user, in a request to Responses.
    reasoning: u64,
    pub(super) endpoint: Endpoint,
    operation: Operation,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// [`UnreadableRequest`] if the body is not a JSON object.
    pub(super) fn read(path: &str, body: &[u8]) -> Result<Self, UnreadableRequest> {
        let path = &*endpoint::normalized(path);
        let endpoint = Endpoint::of(path);
        let mut request = Self::at(endpoint);
        if let Err(error) = body::read(body, &mut request) {
            // JSON allows unpaired surrogates, for example where a text was cut within an emoji.
            let Some(body) = surrogates::replace_unpaired(body) else { return Err(error) };
            request = Self::at(endpoint);
            body::read(&body, &mut request)?;
        }
        let of_path = endpoint::model_of(path);
        request.is_named_by_path = of_path.is_some();
        let named = request.named.model.take().filter(|model| !model.is_empty());
        request.model = of_path.or(named);
        request.has_known_path = endpoint.is_some() || endpoint::invokes(path);
        request.endpoint = endpoint.unwrap_or_else(|| request.likely_endpoint());
        request.operation = Operation::of(request.endpoint, path);
        Ok(request)
    }

    /// Returns a request of which only the endpoint is known.
    fn at(endpoint: Option<Endpoint>) -> Self {
        let is_counted = endpoint == Some(Endpoint::Responses);
        Self { words: is_counted.then(|| Counter::new(&Words)), ..Self::default() }
    }

    /// Returns the estimate of a request whose body can't be read to its end, by its path, its size, and
    /// the model if that can be read.
    pub(super) fn estimate_unread(path: &str, body: &[u8]) -> Estimate {
        let mut request = Self::default();
        let _ = body::read(body, &mut request);
        let stated = request.named.model.or_else(|| form::model(body));
        Self::estimate_of_size(path, Self::fallback_size(body), stated)
    }

    /// Returns the estimate of a request by its path, the size of its body and the model in the body.
    pub(super) fn estimate_of_size(
        path: &str,
        size: u64,
        stated: Option<CompactString>,
    ) -> Estimate {
        let path = &endpoint::normalized(path);
        let model = endpoint::model_of(path).or(stated).map(seam::key_of);
        let operation = Operation::of(Endpoint::of(path).unwrap_or_default(), path);
        Estimate { model, operation, ..Estimate::from_size(size) }
    }

    /// Returns true if the request only counts the tokens of another one.
    pub(super) fn counts_tokens(&self, path: &str) -> bool {
        self.endpoint == Endpoint::Other && endpoint::counts_tokens(&endpoint::normalized(path))
    }

    /// Returns true if the request embeds a list of contents at Gemini.
    pub(super) fn embeds_list(&self, path: &str) -> bool {
        self.endpoint == Endpoint::Embeddings && endpoint::embeds_list(&endpoint::normalized(path))
    }

    /// Returns the endpoint that the fields of the body indicate.
    fn likely_endpoint(&self) -> Endpoint {
        match (self.has_messages, self.bound) {
            (true, _) => Endpoint::Chat,
            (false, Some(_)) => Endpoint::Completions,
            (false, None) => Endpoint::Other,
        }
    }

    /// Reads the body again and counts its texts exactly, if the model's vocabulary is known.
    pub(super) fn count_texts(self, body: &[u8], vocabulary: Vocabularies) -> Self {
        let Some(vocabulary) = self.model.as_deref().and_then(vocabulary) else { return self };
        let mut request = Self { counter: Some(Counter::new(vocabulary)), ..Self::default() };
        match body::read(body, &mut request) {
            Ok(()) => {
                let Self { model, endpoint, operation, modes, has_known_path, .. } = self;
                let Self { words, definitions, deferred, reasoning, items, .. } = self;
                let has_kept_content = self.has_kept_content;
                let request = Self { words, definitions, deferred, reasoning, items, ..request };
                let request = Self { has_kept_content, ..request };
                Self { model, endpoint, operation, modes, has_known_path, ..request }
            }
            Err(_) => self,
        }
    }

    /// Returns the number of bytes of an unreadable body that are charged as text: all of them, or none
    /// for a form, since the size of a file in it doesn't indicate tokens.
    fn fallback_size(body: &[u8]) -> u64 {
        if body.starts_with(b"--") { 0 } else { body.len() as u64 }
    }

    /// Returns the maximum output of all choices together, in tokens.
    pub(super) fn max_output(&self) -> Option<u64> {
        self.bound.map(|bound| bound.saturating_mul(self.choices()))
    }

    /// Returns [`max_output`](Self::max_output), or `unbounded` tokens for each choice.
    pub(super) fn output(&self, unbounded: u64) -> u64 {
        self.max_output().unwrap_or_else(|| unbounded.saturating_mul(self.choices()))
    }

    /// Returns the estimated tokens of the prompt.
    pub(super) fn prompt_tokens(&self, weights: &PromptWeights) -> u64 {
        self.text_tokens(weights)
            .saturating_add(self.schema / weights.schema)
            .saturating_add(self.other_tokens(weights))
    }

    /// Returns the estimated tokens of a prompt to Responses: its texts by their words, unless the model's vocabulary
    /// is known, and its functions by their definitions, of which each has `per_function` tokens beside.
    pub(super) fn responses_tokens(&self, weights: &PromptWeights, per_function: u64) -> u64 {
        let texts = self.text.saturating_add(self.call_text);
        let text = match (&self.counter, &self.words) {
            (None, Some(words)) => {
                texts.saturating_sub(words.bytes()).div_ceil(weights.text) + words.tokens()
            }
            _ => self.text_tokens(weights),
        };
        // A list in the conversation defines functions of its own.
        let defined = self.functions.saturating_sub(self.deferred.functions);
        let introduction = if defined > 0 { INTRODUCTION } else { 0 };
        let per_call = if self.names_reasoning_model() { PER_CALL_OF_REASONING } else { 0 };
        text.saturating_add(self.definitions)
            .saturating_add(introduction)
            .saturating_add(defined.saturating_mul(per_function))
            .saturating_add(self.deferred.tokens())
            .saturating_add(self.reasoning)
            .saturating_add(self.calls.saturating_mul(per_call))
            .saturating_add(self.other_tokens(&weights.functions(0)))
    }

    /// Returns true if the request names a model of OpenAI that reasons.
    fn names_reasoning_model(&self) -> bool {
        let model = self.model.as_deref().unwrap_or_default();
        ["gpt-5", "o1", "o3", "o4"].iter().any(|family| model.starts_with(family))
    }

    /// Returns the estimated tokens of all parts of the prompt that aren't text.
    fn other_tokens(&self, weights: &PromptWeights) -> u64 {
        let functions = if self.functions > 0 { weights.functions } else { 0 };
        self.token_ids
            .saturating_add(self.calls.saturating_mul(weights.call))
            .saturating_add(functions)
            .saturating_add(self.searches.saturating_mul(weights.search))
            .saturating_add(self.built_in.saturating_mul(weights.built_in_tool))
            .saturating_add(self.media_tokens(&weights.media))
            .saturating_add(self.framing(weights))
    }

    /// Returns the tokens of images, audio, videos and files.
    pub(super) fn media_tokens(&self, tokens: &MediaTokens) -> u64 {
        self.media.iter().map(|medium| tokens.of(medium)).fold(0, u64::saturating_add)
    }

    pub(super) fn into_estimate(self, reserved: Reserved, weights: &PromptWeights) -> Estimate {
        let max_output = self.bound.map(|bound| bound.saturating_mul(self.answers()));
        let stream = self.stream;
        let (max_input, has_audio) = (self.max_prompt_tokens(weights), self.has_audio());
        let max_input = if self.has_content_elsewhere() { u64::MAX } else { max_input };
        let pricing = self.pricing();
        let Reserved { cost, terms, guess } = reserved;
        let Self { model, operation, .. } = self;
        let model = model.map(seam::key_of);
        let exact = true;
        Estimate {
            model,
            operation,
            cost,
            terms,
            stream,
            max_output,
            max_input,
            has_audio,
            exact,
            mode: None,
            pricing,
            is_charged_as_received: false,
            cached: CachedPrompt::CHARGED,
            guess,
        }
    }

    /// Marks the path as one that runs a model, if it is.
    pub(super) fn on_path_of_model(&mut self, is_of_model: impl FnOnce() -> bool) {
        self.has_known_path = self.has_known_path || is_of_model();
    }

    fn add_definition(&mut self, tokens: u64) {
        self.definitions = self.definitions.saturating_add(tokens);
    }

    /// Adds a text of the conversation.
    fn add_text(&mut self, text: &str) {
        self.text = self.text.saturating_add(text.len() as u64);
        self.count(text);
    }

    /// Adds the name or the arguments of a call.
    fn add_call_text(&mut self, text: &str) {
        self.call_text = self.call_text.saturating_add(text.len() as u64);
        self.count(text);
    }

    fn count(&mut self, text: &str) {
        if let Some(counter) = &mut self.counter {
            counter.add(text);
        }
        if let Some(words) = &mut self.words {
            words.add(text);
        }
    }

    /// Returns the tokens of all texts; JSON texts are always estimated.
    fn text_tokens(&self, weights: &PromptWeights) -> u64 {
        let bytes = self.text.saturating_add(self.call_text);
        let (counted, tokens) = match &self.counter {
            Some(counter) => (counter.bytes(), counter.tokens()),
            None => (0, 0),
        };
        bytes.saturating_sub(counted).div_ceil(weights.text).saturating_add(tokens)
    }

    fn choices(&self) -> u64 {
        self.choices.unwrap_or(1).max(1)
    }

    /// Returns the tokens of a conversation around its texts; other endpoints have none.
    fn framing(&self, weights: &PromptWeights) -> u64 {
        let (item, answer, names) = match &self.counter {
            Some(Counter { vocabulary: v, .. }) => (v.per_item(), v.per_conversation(), self.names),
            None => (weights.item, weights.conversation, 0),
        };
        let around = self.items.saturating_mul(item).saturating_add(answer);
        match self.endpoint {
            Endpoint::Chat => around.saturating_add(names),
            Endpoint::Responses => around,
            _ => 0,
        }
    }
}

/// The tokens that introduce the functions of a prompt to Responses: `# Tools`, `## functions` and the lines around
/// their definitions (recorded: 7 to 10 with GPT-4o and GPT-4.1, 4 prompts; 14 with GPT-5, 5 prompts; 11 to 19 in 14
/// chats).
const INTRODUCTION: u64 = 12;

/// The further tokens of a call, in the prompt of a model that reasons, which shows the channel and the sender of
/// messages (recorded: 14 tokens for 3 calls; with it, all 17 prompts with deferred tools and calls are near).
const PER_CALL_OF_REASONING: u64 = 5;
