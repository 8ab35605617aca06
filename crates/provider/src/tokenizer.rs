//! Exact counts of text, for models whose vocabulary ships with the crate: OpenAI's.
//!
//! [`Profile::with_tokenizer`](crate::Profile::with_tokenizer) enables it. Nothing is downloaded.
//! Prompts to other models are estimated by characters; tools, images and files always are estimates.

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};

use crate::request::Vocabulary;

/// Returns the vocabulary of a model, if it ships with the crate.
///
/// A name may end in a date or a size, begin with the model's maker (`openai/gpt-4o`,
/// `openai.gpt-oss-20b-1:0`), or be that of a fine-tuned model (`ft:gpt-4o-mini:acme::id`).
pub(super) fn vocabulary(model: &str) -> Option<&'static dyn Vocabulary> {
    let name = model.strip_prefix("ft:").unwrap_or(model);
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.strip_prefix("openai.").unwrap_or(name);
    let of = |names: &[&str]| names.iter().any(|family| is_of(name, family));
    let (_, family) = FAMILIES.iter().find(|(names, _)| of(names))?;
    Some(family)
}

/// Loads the vocabularies, so that no request waits for them.
pub(super) fn load() {
    for vocabulary in [o200k_base(), cl100k_base()] {
        count(vocabulary, "");
    }
}

/// Models with the same vocabulary and chat template.
#[derive(Debug)]
struct Family {
    tokenizer: fn() -> &'static Tokenizer,
    /// The tokens that begin an answer.
    answer: u64,
}

impl Vocabulary for Family {
    fn count(&self, text: &str) -> u64 {
        count((self.tokenizer)(), text)
    }

    /// One of them is the role. Source: OpenAI's cookbook, "How to count tokens with tiktoken".
    fn per_item(&self) -> u64 {
        4
    }

    fn per_conversation(&self) -> u64 {
        self.answer
    }
}

/// Returns true if a name is that of a family, with or without a date, a size or a tag after it.
fn is_of(name: &str, family: &str) -> bool {
    let is_suffix = |rest: &str| family.ends_with('.') || rest.starts_with(['-', ':']);
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || is_suffix(rest))
}

fn count(tokenizer: &Tokenizer, text: &str) -> u64 {
    tokenizer.split(text).map(|word| count_word(tokenizer, word)).sum()
}

fn count_word(tokenizer: &Tokenizer, word: &str) -> u64 {
    if word.len() <= LONGEST_WORD {
        return tokenizer.bpe.count(word.as_bytes()) as u64;
    }
    let end = (1..=LONGEST_WORD).rev().find(|&end| word.is_char_boundary(end));
    let head = &word.as_bytes()[..end.unwrap_or(LONGEST_WORD)];
    let tokens = tokenizer.bpe.count(head) as u64;
    tokens.saturating_mul(word.len() as u64).div_ceil(head.len() as u64)
}

/// The families and their name prefixes. Source of the vocabularies: `model.py` of OpenAI's tiktoken
/// 0.14; `o200k_harmony` of gpt-oss equals `o200k_base` for text. Source of the tokens that begin an
/// answer: OpenAI's cookbook (3), recordings of models that reason (2) and of gpt-oss, whose template
/// adds about 60.
const FAMILIES: &[(&[&str], Family)] = &[
    (&["gpt-4o", "chatgpt-4o", "gpt-4.1", "gpt-4.5"], Family { tokenizer: o200k_base, answer: 3 }),
    (
        &["gpt-5", "gpt-5.", "o1", "o3", "o4", "codex-mini"],
        Family { tokenizer: o200k_base, answer: 2 },
    ),
    (&["gpt-oss"], Family { tokenizer: o200k_base, answer: 63 }),
    (
        // Azure spells it `gpt-35-turbo`.
        &["gpt-4", "gpt-3.5", "gpt-35", "davinci-002", "babbage-002"],
        Family { tokenizer: cl100k_base, answer: 3 },
    ),
    (&["text-embedding-3", "text-embedding-ada-002"], Family { tokenizer: cl100k_base, answer: 0 }),
];

/// The number of bytes of a word (consecutive letters, signs or spaces) that are counted; the rest of a
/// longer word is extrapolated by its bytes. Counting a long row of dashes takes a hundred times as long
/// as counting prose.
const LONGEST_WORD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_found_by_family_name() {
        for (model, tokens) in [
            ("gpt-4o", 3),
            ("gpt-4o-2024-08-06", 3),
            ("ft:gpt-4o-mini-2024-07-18:acme::B1", 3),
            ("openai/gpt-4.1-nano", 3),
            ("gpt-5.1-codex", 3),
            ("openai.gpt-oss-20b-1:0", 3),
            ("gpt-oss:20b", 3),
            ("o3-mini", 3),
            ("gpt-4", 4),
            ("gpt-4-0613", 4),
            ("gpt-4-turbo", 4),
            ("gpt-3.5-turbo-0125", 4),
            ("ft:gpt-3.5-turbo:acme::B1", 4),
            ("gpt-35-turbo-16k", 4),
            ("text-embedding-3-large", 4),
        ] {
            let vocabulary = vocabulary(model).unwrap_or_else(|| panic!("{model}"));
            assert_eq!(vocabulary.count("速率限制"), tokens, "{model}");
        }
    }

    #[test]
    fn model_without_vocabulary_has_no_count() {
        for model in
            ["", "ft:", "gpt-", "gpt-2", "gpt-4x", "o10", "claude-sonnet-4", "my-gpt-4o", "gpt-6"]
        {
            assert!(vocabulary(model).is_none(), "{model}");
        }
    }

    /// The examples of OpenAI's cookbook.
    #[test]
    fn token_counts_equal_tiktoken() {
        for (text, cl100k, o200k) in [
            ("", 0, 0),
            ("tiktoken is great!", 6, 6),
            ("antidisestablishmentarianism", 6, 6),
            ("2 + 2 = 4", 7, 7),
            ("お誕生日おめでとう", 9, 8),
            ("<|endoftext|>", 7, 7),
        ] {
            let counts = [cl100k_base(), o200k_base()].map(|tokenizer| count(tokenizer, text));
            assert_eq!(counts, [cl100k, o200k], "{text}");
        }
    }

    #[test]
    fn long_word_is_extrapolated_from_the_start() {
        for letter in ["a", " ", "=", "-", "\n", "😀", "速", "'"] {
            let text = letter.repeat(5_000);
            for tokenizer in [cl100k_base(), o200k_base()] {
                let (exact, counted) = (tokenizer.count(&text) as u64, count(tokenizer, &text));
                assert!(exact.abs_diff(counted) * 50 <= exact, "{letter:?}: {counted} of {exact}");
            }
        }
    }
}
