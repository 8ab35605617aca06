//! Usage as OpenAI and those that are compatible with it state it.

use super::{Count, Counts, Field, Wanted};
use crate::quota::Usage;

/// Chat, completions and embeddings: `usage.prompt_tokens`. Responses: `usage.input_tokens`, and in
/// their streams `response.usage.input_tokens` (of `response.completed`, `.incomplete`, `.failed`).
pub(in crate::provider) const WANTED: &Wanted = &Wanted::new(&[
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
]);

/// Embeddings may state only a total, which is then the input.
pub(in crate::provider) fn usage(counts: &Counts) -> Option<Usage> {
    let output = counts.of(Count::Output);
    let total = counts.of(Count::Total);
    let input = counts.of(Count::Input);
    if input.is_none() && output.is_none() && total.is_none() {
        return None;
    }
    let rest = total.unwrap_or(0).saturating_sub(output.unwrap_or(0));
    Some(Usage {
        input: input.unwrap_or(rest),
        output: output.unwrap_or(0),
        cache_read: counts.of(Count::CacheRead).unwrap_or(0),
        cache_write: 0,
    })
}
