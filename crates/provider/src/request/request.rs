use compact_str::CompactString;

use super::counter::Counter;
use super::deferred::DeferredTools;
use super::endpoint::Endpoint;
use super::medium::Medium;
use super::named::Named;
use crate::Operation;
use crate::mode::NamedModes;

/// The model of a request and the counts of its parts.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) model: Option<CompactString>,
    /// True if the path names the model.
    pub(super) is_named_by_path: bool,
    /// True if the path is known to run a model.
    pub(super) has_known_path: bool,
    /// The models that the body names.
    pub(super) named: Named,
    /// The models that may answer instead.
    pub(super) fallbacks: Vec<CompactString>,
    /// The size of the body, in bytes.
    pub(super) body: u64,
    pub(crate) stream: bool,
    /// The provider generates on after the connection is closed.
    pub(crate) background: bool,
    pub(crate) modes: NamedModes,
    /// The bytes of UTF-8 in the contents of messages, the prompt, the input and the instructions.
    pub(crate) text: u64,
    /// Messages, and the other items of a conversation.
    pub(crate) items: u64,
    /// Texts of a prompt outside a conversation.
    pub(super) texts: u64,
    /// Lists of token ids in such a prompt.
    pub(super) token_lists: u64,
    /// The number of tokens that were sent as ids (embeddings, completions).
    pub(crate) token_ids: u64,
    /// Tool calls in the conversation.
    pub(crate) calls: u64,
    /// The bytes of the names and arguments of calls.
    pub(crate) call_text: u64,
    /// Names of participants in a chat.
    pub(super) names: u64,
    pub(crate) media: Vec<Medium>,
    /// Functions among the tools.
    pub(crate) functions: u64,
    /// Web searches among the tools.
    pub(crate) searches: u64,
    /// Other tools that the provider runs itself.
    pub(crate) built_in: u64,
    /// The bytes of compact JSON of the functions and of the schema of the answer.
    pub(crate) schema: u64,
    /// Whether the request asks for reasoning (true) or turns it off; `None` if it says nothing of it.
    pub(crate) reasons: Option<bool>,
    /// `n` or `best_of`, the larger.
    pub(crate) choices: Option<u64>,
    /// `max_tokens`, `max_completion_tokens` or `max_output_tokens`, of one choice.
    pub(super) bound: Option<u64>,
    /// True if content that the provider keeps becomes part of the prompt.
    pub(super) has_kept_content: bool,
    /// True if the provider keeps the prompt, which may name another model.
    pub(super) has_kept_prompt: bool,
    /// True if the body has `messages`, which identifies a chat if the path doesn't.
    pub(super) has_messages: bool,
    /// Counts the texts, if the model's vocabulary is known.
    pub(super) counter: Option<Counter>,
    /// Counts the texts of a request to OpenAI's Responses by their words.
    pub(super) words: Option<Counter>,
    /// The estimated tokens of the definitions of functions in a request to Responses.
    pub(super) definitions: u64,
    /// Tools that are loaded in the course of the conversation.
    pub(super) deferred: DeferredTools,
    /// The estimated tokens of reasoning since the last message of the user, in a request to Responses.
    pub(super) reasoning: u64,
    pub(crate) endpoint: Endpoint,
    pub(super) operation: Operation,
}

impl Request {
    /// Returns the maximum output of all choices together, in tokens.
    pub(crate) fn max_output(&self) -> Option<u64> {
        self.bound.map(|bound| bound.saturating_mul(self.choices()))
    }

    /// Returns [`max_output`](Self::max_output), or `unbounded` tokens for each choice.
    pub(crate) fn output(&self, unbounded: u64) -> u64 {
        self.max_output().unwrap_or_else(|| unbounded.saturating_mul(self.choices()))
    }

    pub(super) fn choices(&self) -> u64 {
        self.choices.unwrap_or(1).max(1)
    }

    /// Marks the path as one that runs a model, if it is.
    pub(crate) fn on_path_of_model(&mut self, is_of_model: impl FnOnce() -> bool) {
        self.has_known_path = self.has_known_path || is_of_model();
    }

    pub(super) fn add_definition(&mut self, tokens: u64) {
        self.definitions = self.definitions.saturating_add(tokens);
    }

    /// Adds a text of the conversation.
    pub(super) fn add_text(&mut self, text: &str) {
        self.text = self.text.saturating_add(text.len() as u64);
        self.count(text);
    }

    /// Adds the name or the arguments of a call.
    pub(super) fn add_call_text(&mut self, text: &str) {
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
}
