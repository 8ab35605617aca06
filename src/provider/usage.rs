//! Where responses of OpenAI's shape state their usage, and how the counts make one.

use super::scanner::{Count, Counts, Field, Wanted};
use crate::quota::Usage;

/// Chat, completions and embeddings; Responses, whole and inside the last event of its stream
/// (`response.completed`, `.incomplete`, `.failed`); and what compatible servers add.
pub(super) const OPENAI_FIELDS: &[Field] = &[
    Field::count(&["usage", "prompt_tokens"], Count::Input),
    Field::count(&["usage", "completion_tokens"], Count::Output),
    Field::count(&["usage", "total_tokens"], Count::Total),
    Field::count(&["usage", "prompt_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["usage", "input_tokens"], Count::Input),
    Field::count(&["usage", "output_tokens"], Count::Output),
    Field::count(&["usage", "input_tokens_details", "cached_tokens"], Count::CacheRead),
    Field::count(&["response", "usage", "input_tokens"], Count::Input),
    Field::count(&["response", "usage", "output_tokens"], Count::Output),
    Field::count(&["response", "usage", "total_tokens"], Count::Total),
    Field::count(&["response", "usage", "input_tokens_details", "cached_tokens"], Count::CacheRead),
];

pub(super) const OPENAI: &Wanted = &Wanted::new(OPENAI_FIELDS);

/// A usage whose input holds what was read from and written to the cache.
///
/// Embeddings may state only a total, which is then the input.
pub(super) fn cache_within(counts: &Counts) -> Option<Usage> {
    let outputs = [Count::Output, Count::OtherOutput, Count::OutputSoFar];
    let output = outputs.into_iter().find_map(|count| counts.of(count));
    let total = counts.of(Count::Total);
    let input = counts.of(Count::Input).or(counts.of(Count::OtherInput));
    if input.is_none() && output.is_none() && total.is_none() {
        return None;
    }
    let rest = total.unwrap_or(0).saturating_sub(output.unwrap_or(0));
    let of = |count| counts.of(count).unwrap_or(0);
    Some(Usage {
        input: input.unwrap_or(rest).saturating_add(of(Count::ToolPrompt)),
        output: output.unwrap_or(0).saturating_add(of(Count::Thoughts)),
        cache_read: of(Count::CacheRead),
        cache_write: of(Count::CacheWrite),
    })
}

/// A usage whose input leaves out what was read from and written to the cache.
pub(super) fn cache_apart(counts: &Counts) -> Option<Usage> {
    let usage = cache_within(counts)?;
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    Some(Usage { input: usage.input.saturating_add(cached), ..usage })
}
