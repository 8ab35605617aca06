//! Exact counts of text, for models whose vocabulary ships with the crate: OpenAI's.
//!
//! [`Profile::with_tokenizer`](super::Profile::with_tokenizer) plugs it in. It does not know what a
//! model's template puts around texts: that is [`Weights`](super::request::Weights)' part.

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};

use super::request::Count;

/// How the texts of a model are counted; `None` where its vocabulary isn't here.
///
/// A name may have a date or a size behind it, its maker before it (`openai/gpt-4o`,
/// `openai.gpt-oss-20b-1:0`), and may be fine-tuned (`ft:gpt-4o-mini:acme::id`).
pub(super) fn count_of(model: &str) -> Option<Count> {
    let name = model.strip_prefix("ft:").unwrap_or(model);
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.strip_prefix("openai.").unwrap_or(name);
    let is_of = |families: &[&str]| families.iter().any(|family| is_of(name, family));
    if is_of(O200K) {
        Some(|text| count(o200k_base(), text))
    } else if is_of(CL100K) {
        Some(|text| count(cl100k_base(), text))
    } else {
        None
    }
}

/// Reads the vocabularies, so that no request waits for it.
pub(super) fn load() {
    for vocabulary in [o200k_base(), cl100k_base()] {
        count(vocabulary, "");
    }
}

/// Whether a name is that of a family, or begins with it and goes on with a date, a size, a tag.
fn is_of(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':']))
}

/// The tokens of a text. Its time is linear in its length; a run of one character takes up to
/// a hundred times as long as prose does, and up to a thousand if it weren't cut into parts.
fn count(vocabulary: &Tokenizer, text: &str) -> u64 {
    let parts = vocabulary.split(text).flat_map(|word| word.as_bytes().chunks(LONGEST_WORD));
    parts.map(|part| vocabulary.bpe.count(part) as u64).sum()
}

/// Families with the vocabulary `o200k_base`; `o200k_harmony` of gpt-oss is the same in text.
/// Source: `model.py` of OpenAI's tiktoken 0.14.
const O200K: &[&str] = &[
    "gpt-4o",
    "chatgpt-4o",
    "gpt-4.1",
    "gpt-4.5",
    "gpt-5",
    "gpt-5.1",
    "gpt-5.2",
    "gpt-5.3",
    "gpt-5.4",
    "gpt-5.5",
    "gpt-oss",
    "o1",
    "o3",
    "o4",
    "codex-mini",
];

/// Families with the vocabulary `cl100k_base`; Azure spells it `gpt-35-turbo`. Source: the same.
const CL100K: &[&str] = &[
    "gpt-4",
    "gpt-3.5",
    "gpt-3.5-turbo",
    "gpt-35-turbo",
    "text-embedding-ada-002",
    "text-embedding-3",
    "davinci-002",
    "babbage-002",
];

/// Bytes that are counted at once of a word: a run of letters, signs or spaces. Longer ones are no
/// language, and a cut adds a token at most.
const LONGEST_WORD: usize = 512;
