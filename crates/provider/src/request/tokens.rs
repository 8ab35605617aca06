//! The estimated tokens of the parts of a prompt.

use super::counter::Counter;
use super::endpoint::Endpoint;
use super::request::Request;
use crate::media::MediaTokens;
use crate::prompt_weights::PromptWeights;

impl Request {
    /// Returns the estimated tokens of the prompt.
    pub(crate) fn prompt_tokens(&self, weights: &PromptWeights) -> u64 {
        self.text_tokens(weights)
            .saturating_add(self.schema / weights.schema)
            .saturating_add(self.other_tokens(weights))
    }

    /// Returns the estimated tokens of a prompt to Responses: its texts by their words, unless the model's vocabulary
    /// is known, and its functions by their definitions, of which each has `per_function` tokens beside.
    pub(crate) fn responses_tokens(&self, weights: &PromptWeights, per_function: u64) -> u64 {
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
    pub(super) fn other_tokens(&self, weights: &PromptWeights) -> u64 {
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
    pub(crate) fn media_tokens(&self, tokens: &MediaTokens) -> u64 {
        self.media.iter().map(|medium| tokens.of(medium)).fold(0, u64::saturating_add)
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
