//! Where responses state their usage, in every format seen, and how the counts make one.
//!
//! One table serves all profiles: providers serve each other's formats (Anthropic's on Azure,
//! OpenAI's on Bedrock, any of them behind a gateway), and what a name means does not hang on the
//! host. Which tokens are charged, and when, is the profile's.

use super::scanner::{Count, Counts, Field, OUTPUTS, Wanted};
use crate::quota::Usage;

pub(super) const WANTED: &Wanted = &Wanted::new(FIELDS);

/// The usage that the counts make; `None` where none was stated.
///
/// Embeddings may state only a total, which is then the input.
pub(super) fn of(counts: &Counts) -> Option<Usage> {
    let known = |count| counts.of(count);
    let of = |count| known(count).unwrap_or(0);
    let apart = of(Count::ReadApart).saturating_add(of(Count::WrittenApart));
    let input = known(Count::Prompt)
        .or_else(|| Some(known(Count::Input)?.saturating_add(apart)))
        .or(known(Count::OtherInput));
    let output = OUTPUTS.into_iter().find_map(known);
    let total = known(Count::Total);
    if input.is_none() && output.is_none() && total.is_none() && !counts.are_whole() {
        return None;
    }
    let rest = total.unwrap_or(0).saturating_sub(output.unwrap_or(0));
    Some(Usage {
        input: input.unwrap_or(rest).saturating_add(of(Count::ToolPrompt)),
        output: output.unwrap_or(0).saturating_add(of(Count::Thoughts)),
        cache_read: known(Count::CacheRead).unwrap_or(of(Count::ReadApart)),
        cache_write: of(Count::WrittenApart),
    })
}

const FIELDS: &[Field] = &[
    // OpenAI's chat, completions and embeddings, and what compatible servers add to them. Every
    // chunk of a stream may state a usage; the last one counts, whole.
    Field::whole(&["usage", "prompt_tokens"], Count::Prompt),
    Field::whole(&["usage", "completion_tokens"], Count::Completion),
    Field::whole(&["usage", "total_tokens"], Count::Total),
    Field::count(&["usage", "prompt_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["usage", "cached_tokens"], Count::CacheRead),
    // DeepSeek.
    Field::count(&["usage", "prompt_cache_hit_tokens"], Count::CacheRead),
    // The last chunk of Groq's streams, asked for or not.
    Field::whole(&["x_groq", "usage", "prompt_tokens"], Count::Prompt),
    Field::whole(&["x_groq", "usage", "completion_tokens"], Count::Completion),
    Field::whole(&["x_groq", "usage", "total_tokens"], Count::Total),
    Field::count(&["x_groq", "usage", "prompt_tokens_details", "cached_tokens"], Count::CacheRead),
    // Responses, whole and inside the last event of its stream (`response.completed`,
    // `.incomplete`, `.failed`); and, with its own cache beside it, Anthropic's Messages.
    Field::count(&["usage", "input_tokens"], Count::Input),
    Field::count(&["usage", "output_tokens"], Count::Output),
    Field::count(&["usage", "input_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["response", "usage", "input_tokens"], Count::Input),
    Field::count(&["response", "usage", "output_tokens"], Count::Output),
    Field::count(&["response", "usage", "total_tokens"], Count::Total),
    Field::count(&["response", "usage", "input_tokens_details", "cached_tokens"], Count::CacheRead),
    // Anthropic's stream: `message_delta` repeats some counts of `message_start`, and its are the
    // last; what it leaves out stays.
    Field::count(&["usage", "cache_read_input_tokens"], Count::ReadApart),
    Field::count(&["usage", "cache_creation_input_tokens"], Count::WrittenApart),
    Field::count(&["message", "usage", "input_tokens"], Count::Input),
    Field::count(&["message", "usage", "output_tokens"], Count::OutputSoFar),
    Field::count(&["message", "usage", "cache_read_input_tokens"], Count::ReadApart),
    Field::count(&["message", "usage", "cache_creation_input_tokens"], Count::WrittenApart),
    // Gemini: the prompt holds what was cached; what tools added to it and what was thought are
    // stated apart. Where it is, it is the usage, be it empty. Every chunk of a stream counts what
    // came so far.
    Field::object(&["usageMetadata"]),
    Field::count(&["usageMetadata", "promptTokenCount"], Count::Prompt),
    Field::count(&["usageMetadata", "candidatesTokenCount"], Count::OutputSoFar),
    Field::count(&["usageMetadata", "thoughtsTokenCount"], Count::Thoughts),
    Field::count(&["usageMetadata", "toolUsePromptTokenCount"], Count::ToolPrompt),
    Field::count(&["usageMetadata", "cachedContentTokenCount"], Count::CacheRead),
    // Gemini's Interactions, whole and in the last event of its stream.
    Field::whole(&["usage", "total_input_tokens"], Count::Prompt),
    Field::whole(&["usage", "total_output_tokens"], Count::Output),
    Field::count(&["usage", "total_thought_tokens"], Count::Thoughts),
    Field::count(&["usage", "total_tool_use_tokens"], Count::ToolPrompt),
    Field::count(&["usage", "total_cached_tokens"], Count::CacheRead),
    Field::whole(&["interaction", "usage", "total_input_tokens"], Count::Prompt),
    Field::whole(&["interaction", "usage", "total_output_tokens"], Count::Output),
    Field::count(&["interaction", "usage", "total_thought_tokens"], Count::Thoughts),
    Field::count(&["interaction", "usage", "total_tool_use_tokens"], Count::ToolPrompt),
    Field::count(&["interaction", "usage", "total_cached_tokens"], Count::CacheRead),
    // Bedrock's Converse, and Nova.
    Field::whole(&["usage", "inputTokens"], Count::Input),
    Field::whole(&["usage", "outputTokens"], Count::Output),
    Field::count(&["usage", "cacheReadInputTokens"], Count::ReadApart),
    Field::count(&["usage", "cacheWriteInputTokens"], Count::WrittenApart),
    Field::count(&["usage", "cacheReadInputTokenCount"], Count::ReadApart),
    Field::count(&["usage", "cacheWriteInputTokenCount"], Count::WrittenApart),
    Field::whole(&["metadata", "usage", "inputTokens"], Count::Input),
    Field::whole(&["metadata", "usage", "outputTokens"], Count::Output),
    Field::count(&["metadata", "usage", "cacheReadInputTokenCount"], Count::ReadApart),
    Field::count(&["metadata", "usage", "cacheWriteInputTokenCount"], Count::WrittenApart),
    // Titan and Llama on Bedrock, and what the last chunk of a stream of `invoke` says for all.
    Field::count(&["inputTextTokenCount"], Count::Input),
    Field::count(&["totalOutputTextTokenCount"], Count::Output),
    Field::count(&["prompt_token_count"], Count::Input),
    Field::count(&["generation_token_count"], Count::Output),
    Field::count(&[METRICS, "inputTokenCount"], Count::Input),
    Field::count(&[METRICS, "outputTokenCount"], Count::Output),
    Field::count(&[METRICS, "cacheReadInputTokenCount"], Count::ReadApart),
    Field::count(&[METRICS, "cacheWriteInputTokenCount"], Count::WrittenApart),
    // Cohere v2, whole and `message-end` of its stream: what was processed (`tokens`); what is
    // billed leaves out what Cohere itself added.
    Field::count(&["usage", "tokens", "input_tokens"], Count::Input),
    Field::count(&["usage", "tokens", "output_tokens"], Count::Output),
    Field::count(&["usage", "billed_units", "input_tokens"], Count::OtherInput),
    Field::count(&["usage", "billed_units", "output_tokens"], Count::OtherOutput),
    Field::count(&["delta", "usage", "tokens", "input_tokens"], Count::Input),
    Field::count(&["delta", "usage", "tokens", "output_tokens"], Count::Output),
    Field::count(&["delta", "usage", "cached_tokens"], Count::CacheRead),
    // Cohere v1, whole and `stream-end` of its stream.
    Field::count(&["meta", "tokens", "input_tokens"], Count::Input),
    Field::count(&["meta", "tokens", "output_tokens"], Count::Output),
    Field::count(&["meta", "billed_units", "input_tokens"], Count::OtherInput),
    Field::count(&["meta", "billed_units", "output_tokens"], Count::OtherOutput),
    Field::count(&["response", "meta", "tokens", "input_tokens"], Count::Input),
    Field::count(&["response", "meta", "tokens", "output_tokens"], Count::Output),
    Field::count(&["response", "meta", "billed_units", "input_tokens"], Count::OtherInput),
    Field::count(&["response", "meta", "billed_units", "output_tokens"], Count::OtherOutput),
    // Ollama.
    Field::count(&["prompt_eval_count"], Count::Input),
    Field::count(&["eval_count"], Count::Output),
    // The server of llama.cpp: its own completions; and `timings`, which count what was not cached,
    // where a usage was not asked for.
    Field::count(&["tokens_evaluated"], Count::Input),
    Field::count(&["tokens_predicted"], Count::Output),
    Field::count(&["timings", "prompt_n"], Count::OtherInput),
    Field::count(&["timings", "predicted_n"], Count::OtherOutput),
];

const METRICS: &str = "amazon-bedrock-invocationMetrics";
