//! Meaningless texts with a known number of tokens.

/// Returns a text of `tokens` tokens, with [`CHARS_PER_TOKEN`] characters each.
pub(super) fn text(tokens: u64) -> String {
    let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
    WORDS.iter().cycle().take(tokens).copied().collect()
}

/// Returns the tokens of a text that [`split`] makes chunks of.
pub(super) fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(CHARS_PER_TOKEN) as u64
}

/// Returns the first `tokens` tokens of a text.
pub(super) fn cut(text: &str, tokens: u64) -> String {
    let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
    text.chars().take(tokens.saturating_mul(CHARS_PER_TOKEN)).collect()
}

/// Splits a text into one chunk per token, up to a maximum.
pub(super) fn split(text: &str) -> impl Iterator<Item = String> + use<> {
    let text: Vec<char> = text.chars().collect();
    let tokens = text.len().div_ceil(CHARS_PER_TOKEN);
    let steps = tokens.min(MAX_DELTAS);
    (0..steps).map(move |step| {
        let at = |step: usize| (tokens * step / steps * CHARS_PER_TOKEN).min(text.len());
        text[at(step)..at(step + 1)].iter().collect()
    })
}

/// Characters per token.
const CHARS_PER_TOKEN: usize = 4;

const WORDS: [&str; 7] = ["the ", "fox ", "may ", "not ", "eat ", "any ", "hen "];

/// The maximum number of chunks of a stream. Providers send a chunk for each token or two; fewer chunks
/// are cheaper to test with.
const MAX_DELTAS: usize = 64;
