use std::fmt;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, Visitor};

use super::named::is_model;

/// The keys that are read, at any depth, in the spellings of all providers. The meaning of a key depends
/// on the object around it: `text` is a part of a message, but at the root the format of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum Key {
    #[serde(alias = "model_id")]
    Model,
    /// The models that answer instead of `model` if it can't (OpenRouter).
    Models,
    Stream,
    /// The provider generates on when the connection is closed (Responses).
    Background,
    /// Tools that the provider runs, beside `tools`: Anthropic's older connector.
    McpServers,
    /// A search that the provider runs (Chat Completions).
    WebSearchOptions,
    Speed,
    #[serde(alias = "serviceTier")]
    ServiceTier,
    InferenceGeo,
    /// Content that the provider keeps, which becomes part of the prompt.
    #[serde(
        rename = "previous_response_id",
        alias = "conversation",
        alias = "cachedContent",
        alias = "cached_content"
    )]
    Kept,
    #[serde(
        rename = "n",
        alias = "best_of",
        alias = "candidateCount",
        alias = "candidate_count",
        alias = "num_generations"
    )]
    Choices,
    #[serde(
        rename = "max_tokens",
        alias = "max_completion_tokens",
        alias = "max_output_tokens",
        alias = "maxOutputTokens",
        alias = "maxTokens",
        alias = "maxTokenCount",
        alias = "max_new_tokens",
        alias = "max_gen_len",
        alias = "max_tokens_to_sample",
        alias = "num_predict",
        alias = "n_predict"
    )]
    Bound,
    #[serde(
        rename = "generationConfig",
        alias = "generation_config",
        alias = "inferenceConfig",
        alias = "textGenerationConfig",
        alias = "toolConfig",
        alias = "options",
        alias = "singleEmbeddingParams"
    )]
    Config,
    #[serde(alias = "contents", alias = "chat_history")]
    Messages,
    #[serde(alias = "inputText", alias = "texts", alias = "query")]
    Prompt,
    /// The text after a completion.
    Suffix,
    #[serde(alias = "inputs", alias = "instances", alias = "requests")]
    Input,
    #[serde(
        alias = "system",
        alias = "systemInstruction",
        alias = "system_instruction",
        alias = "preamble"
    )]
    Instructions,
    Message,
    Documents,
    Tools,
    Functions,
    #[serde(
        alias = "output_config",
        alias = "output_format",
        alias = "outputConfig",
        alias = "responseSchema",
        alias = "responseJsonSchema",
        alias = "response_schema",
        alias = "format"
    )]
    ResponseFormat,
    Text,
    /// At the root of a body, also `thinking`.
    #[serde(alias = "reasoning")]
    ReasoningEffort,
    #[serde(
        alias = "output",
        alias = "parts",
        alias = "refusal",
        alias = "thinking",
        alias = "reasoningContent",
        alias = "reasoningText",
        alias = "toolResult",
        alias = "functionResponse",
        alias = "function_response"
    )]
    Content,
    Id,
    Name,
    Namespace,
    Role,
    EncryptedContent,
    #[serde(alias = "args")]
    Arguments,
    #[serde(alias = "function_call", alias = "functionCall", alias = "toolUse")]
    ToolCalls,
    Function,
    #[serde(alias = "json")]
    Response,
    Type,
    Images,
    #[serde(rename = "image_url", alias = "image")]
    Image,
    #[serde(rename = "input_audio", alias = "audio_url", alias = "audio")]
    Audio,
    #[serde(rename = "video_url", alias = "video")]
    Video,
    #[serde(
        rename = "file",
        alias = "file_id",
        alias = "file_url",
        alias = "file_data",
        alias = "fileData",
        alias = "inlineData",
        alias = "inline_data",
        alias = "source",
        alias = "document",
        alias = "document_url"
    )]
    File,
    #[serde(other)]
    Other,
}

/// A key at the root of a body.
pub(super) struct RootKey(pub(super) Key);

impl<'de> Deserialize<'de> for RootKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(RootKeyVisitor)
    }
}

struct RootKeyVisitor;

impl Visitor<'_> for RootKeyVisitor {
    type Value = RootKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<RootKey, E> {
        if is_model(name.as_bytes()) {
            return Ok(RootKey(Key::Model));
        }
        if name == "thinking" {
            return Ok(RootKey(Key::ReasoningEffort));
        }
        let name: StrDeserializer<'_, E> = name.into_deserializer();
        Key::deserialize(name).map(RootKey)
    }
}
