use super::response_field::ResponseField;
use super::token_counts::TokenCount;

/// The fields in which all known formats state their usage.
///
/// One table serves all profiles: providers serve each other's formats (Anthropic's on Azure, OpenAI's
/// on Bedrock, any of them behind a gateway), and the meaning of a name doesn't depend on the host.
pub(super) const KNOWN: &[ResponseField] = &[
    // OpenAI's chat, completions and embeddings, and additions of compatible servers. Every chunk of
    // a stream may state a usage; the last one counts.
    ResponseField::whole(&["usage", "prompt_tokens"], TokenCount::Input),
    ResponseField::whole(&["usage", "completion_tokens"], TokenCount::PrimaryOutput),
    ResponseField::whole(&["usage", "total_tokens"], TokenCount::Total),
    ResponseField::count(
        &["usage", "prompt_tokens_details", "cached_tokens"],
        TokenCount::CachedInput,
    ),
    ResponseField::count(&["usage", "cached_tokens"], TokenCount::CachedInput),
    // DeepSeek.
    ResponseField::count(&["usage", "prompt_cache_hit_tokens"], TokenCount::CachedInput),
    // xAI states them in addition to `completion_tokens`, other providers within them
    // (docs.x.ai/docs/key-information/consumption-and-rate-limits, looked up on 2026-11-23).
    ResponseField::count(
        &["usage", "completion_tokens_details", "reasoning_tokens"],
        TokenCount::ReasoningDetail,
    ),
    // The last chunk of Groq's streams, requested or not.
    ResponseField::whole(&["x_groq", "usage", "prompt_tokens"], TokenCount::Input),
    ResponseField::whole(&["x_groq", "usage", "completion_tokens"], TokenCount::PrimaryOutput),
    ResponseField::whole(&["x_groq", "usage", "total_tokens"], TokenCount::Total),
    ResponseField::count(
        &["x_groq", "usage", "prompt_tokens_details", "cached_tokens"],
        TokenCount::CachedInput,
    ),
    // Moonshot's streams: in the last chunk with a choice.
    ResponseField::listed(&["choices", "usage", "prompt_tokens"], TokenCount::Input),
    ResponseField::listed(&["choices", "usage", "completion_tokens"], TokenCount::PrimaryOutput),
    ResponseField::listed(&["choices", "usage", "total_tokens"], TokenCount::Total),
    ResponseField::listed(&["choices", "usage", "cached_tokens"], TokenCount::CachedInput),
    // Responses, in the body and in the last event of its stream (`response.completed`,
    // `.incomplete`, `.failed`); and Anthropic's Messages, with cache fields of its own.
    ResponseField::count(&["usage", "input_tokens"], TokenCount::UncachedInput),
    ResponseField::count(&["usage", "output_tokens"], TokenCount::Output),
    ResponseField::count(
        &["usage", "input_tokens_details", "cached_tokens"],
        TokenCount::CachedInput,
    ),
    ResponseField::count(&["response", "usage", "input_tokens"], TokenCount::UncachedInput),
    ResponseField::count(&["response", "usage", "output_tokens"], TokenCount::Output),
    ResponseField::count(&["response", "usage", "total_tokens"], TokenCount::Total),
    ResponseField::count(
        &["response", "usage", "input_tokens_details", "cached_tokens"],
        TokenCount::CachedInput,
    ),
    // Anthropic's stream: `message_delta` repeats some counts of `message_start`, and takes
    // precedence; the others stay.
    ResponseField::count(&["usage", "cache_read_input_tokens"], TokenCount::CacheRead),
    ResponseField::count(&["usage", "cache_creation_input_tokens"], TokenCount::CacheWrite),
    ResponseField::count(&["message", "usage", "input_tokens"], TokenCount::UncachedInput),
    ResponseField::count(&["message", "usage", "output_tokens"], TokenCount::PartialOutput),
    ResponseField::count(&["message", "usage", "cache_read_input_tokens"], TokenCount::CacheRead),
    ResponseField::count(
        &["message", "usage", "cache_creation_input_tokens"],
        TokenCount::CacheWrite,
    ),
    ResponseField::count(
        &["usage", "cache_creation", "ephemeral_1h_input_tokens"],
        TokenCount::LongCacheWrite,
    ),
    ResponseField::count(
        &["message", "usage", "cache_creation", "ephemeral_1h_input_tokens"],
        TokenCount::LongCacheWrite,
    ),
    // Gemini: the prompt includes cached tokens; tokens of tools and of reasoning are stated in
    // addition. `usageMetadata` is the whole usage, even if empty. Every chunk of a stream states the
    // counts so far.
    ResponseField::object(&["usageMetadata"]),
    ResponseField::count(&["usageMetadata", "promptTokenCount"], TokenCount::Input),
    ResponseField::count(&["usageMetadata", "candidatesTokenCount"], TokenCount::PartialOutput),
    ResponseField::count(&["usageMetadata", "thoughtsTokenCount"], TokenCount::Reasoning),
    ResponseField::count(&["usageMetadata", "toolUsePromptTokenCount"], TokenCount::ToolInput),
    ResponseField::count(&["usageMetadata", "cachedContentTokenCount"], TokenCount::CachedInput),
    // Gemini's Interactions, in the body and in the last event of its stream.
    ResponseField::whole(&["usage", "total_input_tokens"], TokenCount::Input),
    ResponseField::whole(&["usage", "total_output_tokens"], TokenCount::Output),
    ResponseField::count(&["usage", "total_thought_tokens"], TokenCount::Reasoning),
    ResponseField::count(&["usage", "total_tool_use_tokens"], TokenCount::ToolInput),
    ResponseField::count(&["usage", "total_cached_tokens"], TokenCount::CachedInput),
    ResponseField::whole(&["interaction", "usage", "total_input_tokens"], TokenCount::Input),
    ResponseField::whole(&["interaction", "usage", "total_output_tokens"], TokenCount::Output),
    ResponseField::count(&["interaction", "usage", "total_thought_tokens"], TokenCount::Reasoning),
    ResponseField::count(&["interaction", "usage", "total_tool_use_tokens"], TokenCount::ToolInput),
    ResponseField::count(&["interaction", "usage", "total_cached_tokens"], TokenCount::CachedInput),
    // Bedrock's Converse, and Nova.
    ResponseField::whole(&["usage", "inputTokens"], TokenCount::UncachedInput),
    ResponseField::whole(&["usage", "outputTokens"], TokenCount::Output),
    ResponseField::count(&["usage", "cacheReadInputTokens"], TokenCount::CacheRead),
    ResponseField::count(&["usage", "cacheWriteInputTokens"], TokenCount::CacheWrite),
    ResponseField::count(&["usage", "cacheReadInputTokenCount"], TokenCount::CacheRead),
    ResponseField::count(&["usage", "cacheWriteInputTokenCount"], TokenCount::CacheWrite),
    ResponseField::whole(&["metadata", "usage", "inputTokens"], TokenCount::UncachedInput),
    ResponseField::whole(&["metadata", "usage", "outputTokens"], TokenCount::Output),
    ResponseField::count(&["metadata", "usage", "cacheReadInputTokenCount"], TokenCount::CacheRead),
    ResponseField::count(
        &["metadata", "usage", "cacheWriteInputTokenCount"],
        TokenCount::CacheWrite,
    ),
    // Titan and Llama on Bedrock, and the last chunk of a stream of `invoke` for all models.
    ResponseField::count(&["inputTextTokenCount"], TokenCount::UncachedInput),
    ResponseField::count(&["totalOutputTextTokenCount"], TokenCount::Output),
    ResponseField::count(&["prompt_token_count"], TokenCount::UncachedInput),
    ResponseField::count(&["generation_token_count"], TokenCount::Output),
    ResponseField::count(&[METRICS, "inputTokenCount"], TokenCount::UncachedInput),
    ResponseField::count(&[METRICS, "outputTokenCount"], TokenCount::Output),
    ResponseField::count(&[METRICS, "cacheReadInputTokenCount"], TokenCount::CacheRead),
    ResponseField::count(&[METRICS, "cacheWriteInputTokenCount"], TokenCount::CacheWrite),
    // Cohere v2, in the body and in `message-end` of its stream: the processed tokens (`tokens`); the
    // billed ones leave out the tokens that Cohere added.
    ResponseField::count(&["usage", "tokens", "input_tokens"], TokenCount::UncachedInput),
    ResponseField::count(&["usage", "tokens", "output_tokens"], TokenCount::Output),
    ResponseField::count(&["usage", "billed_units", "input_tokens"], TokenCount::FallbackInput),
    ResponseField::count(&["usage", "billed_units", "output_tokens"], TokenCount::FallbackOutput),
    ResponseField::count(&["delta", "usage", "tokens", "input_tokens"], TokenCount::UncachedInput),
    ResponseField::count(&["delta", "usage", "tokens", "output_tokens"], TokenCount::Output),
    ResponseField::count(&["delta", "usage", "cached_tokens"], TokenCount::CachedInput),
    // Cohere v1, in the body and in `stream-end` of its stream.
    ResponseField::count(&["meta", "tokens", "input_tokens"], TokenCount::UncachedInput),
    ResponseField::count(&["meta", "tokens", "output_tokens"], TokenCount::Output),
    ResponseField::count(&["meta", "billed_units", "input_tokens"], TokenCount::FallbackInput),
    ResponseField::count(&["meta", "billed_units", "output_tokens"], TokenCount::FallbackOutput),
    ResponseField::count(
        &["response", "meta", "tokens", "input_tokens"],
        TokenCount::UncachedInput,
    ),
    ResponseField::count(&["response", "meta", "tokens", "output_tokens"], TokenCount::Output),
    ResponseField::count(
        &["response", "meta", "billed_units", "input_tokens"],
        TokenCount::FallbackInput,
    ),
    ResponseField::count(
        &["response", "meta", "billed_units", "output_tokens"],
        TokenCount::FallbackOutput,
    ),
    // Ollama.
    ResponseField::count(&["prompt_eval_count"], TokenCount::UncachedInput),
    ResponseField::count(&["eval_count"], TokenCount::Output),
    // The server of llama.cpp: its own completions; and `timings`, which count uncached tokens, if no
    // usage was requested.
    ResponseField::count(&["tokens_evaluated"], TokenCount::UncachedInput),
    ResponseField::count(&["tokens_predicted"], TokenCount::Output),
    ResponseField::count(&["timings", "prompt_n"], TokenCount::FallbackInput),
    ResponseField::count(&["timings", "predicted_n"], TokenCount::FallbackOutput),
    // The last event of a stream: of Gemini, also if it refuses the prompt; of `invoke` on Bedrock; of
    // llama.cpp's own completions.
    ResponseField::end(&["candidates", "finishReason"]),
    ResponseField::end(&["promptFeedback", "blockReason"]),
    ResponseField::end(&[METRICS]),
    ResponseField::end(&["stop"]),
];

const METRICS: &str = "amazon-bedrock-invocationMetrics";
