//! The parts of a request that count as input tokens.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::cache::Prefix;
use crate::token_count::count_tokens;

/// The size of a prompt and of its cacheable prefixes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Prompt {
    /// The estimated tokens of the prompt.
    pub(super) tokens: u64,
    /// Unicode scalar values of the text.
    characters: u64,
    /// Tokens of images and documents.
    media: u64,
    pub(super) prefixes: Vec<Prefix>,
}

impl Prompt {
    /// Counts tools, system prompt and messages, in the order in which they are cached.
    pub(super) fn of(body: &Value, messages: &[Value]) -> Self {
        let mut reader = PromptReader::default();
        reader.prompt.tokens = BASE;
        reader.blocks(&body["tools"]);
        reader.blocks(&body["system"]);
        for message in messages {
            reader.prompt.tokens += MESSAGE;
            reader.blocks(&message["content"]);
        }
        reader.prompt
    }

    /// Returns the estimate before the model has read the prompt: one token per four characters.
    pub(super) fn estimate(&self) -> u64 {
        self.characters.div_ceil(4) + self.media
    }
}

#[derive(Debug, Default)]
struct PromptReader {
    prompt: Prompt,
    hasher: DefaultHasher,
}

impl PromptReader {
    /// Counts a text or an array of blocks.
    fn blocks(&mut self, blocks: &Value) {
        match blocks {
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            Value::Null => {}
            block => self.block(block),
        }
    }

    fn block(&mut self, block: &Value) {
        let mut content = block.clone();
        let cached = content.as_object_mut().and_then(|block| block.remove("cache_control"));
        content.to_string().hash(&mut self.hasher);
        self.count(&content);
        if cached.is_some_and(|cached| !cached.is_null()) {
            let tokens = self.prompt.tokens;
            self.prompt.prefixes.push(Prefix { hash: self.hasher.finish(), tokens });
        }
    }

    fn count(&mut self, block: &Value) {
        match (block, block["type"].as_str()) {
            (Value::String(text), _) => self.text(text),
            (_, Some("text")) => self.text(block["text"].as_str().unwrap_or_default()),
            (_, Some("image")) => self.media(IMAGE),
            (_, Some("document")) => self.media(DOCUMENT),
            (_, Some("tool_result")) => match &block["content"] {
                Value::Array(blocks) => blocks.iter().for_each(|block| self.count(block)),
                content => self.text(content.as_str().unwrap_or_default()),
            },
            // Tool calls, tools and thinking count as their JSON.
            _ => self.text(&block.to_string()),
        }
    }

    fn text(&mut self, text: &str) {
        self.prompt.tokens += count_tokens(text);
        self.prompt.characters += text.chars().count() as u64;
    }

    fn media(&mut self, tokens: u64) {
        self.prompt.tokens += tokens;
        self.prompt.media += tokens;
    }
}

/// Tokens of a request and of each message, besides their text.
const BASE: u64 = 3;
const MESSAGE: u64 = 4;

/// An image at the size to which larger ones are scaled: width x height / 750, as Anthropic's
/// vision guide says.
const IMAGE: u64 = 1_600;

/// A page or two of a PDF, at 1,500 to 3,000 tokens each.
const DOCUMENT: u64 = 3_000;
