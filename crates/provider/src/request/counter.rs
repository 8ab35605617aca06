use std::fmt;

/// A model's vocabulary, which counts the tokens of texts exactly.
pub(crate) trait Vocabulary: fmt::Debug + Sync {
    /// Returns the number of tokens in a text.
    fn count(&self, text: &str) -> u64;

    /// Returns the number of tokens around each item of a conversation.
    fn per_item(&self) -> u64;

    /// Returns the number of tokens that a conversation has in addition to its items.
    fn per_conversation(&self) -> u64;
}

/// Counts the tokens of texts without keeping them.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) vocabulary: &'static dyn Vocabulary,
    /// The bytes of all texts.
    bytes: u64,
    /// The bytes and tokens of the counted texts.
    counted: u64,
    tokens: u64,
}

impl Counter {
    pub(super) fn new(vocabulary: &'static dyn Vocabulary) -> Self {
        Self { vocabulary, bytes: 0, counted: 0, tokens: 0 }
    }

    pub(super) fn add(&mut self, text: &str) {
        let counted = prefix(text, MAX_COUNTED.saturating_sub(self.counted));
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        self.counted += counted.len() as u64;
        self.tokens = self.tokens.saturating_add(self.vocabulary.count(counted));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the tokens of all texts. Texts beyond the bound are extrapolated by their bytes.
    pub(super) fn tokens(&self) -> u64 {
        if self.counted == self.bytes {
            return self.tokens;
        }
        let tokens = u128::from(self.tokens) * u128::from(self.bytes);
        (tokens / u128::from(self.counted.max(1))).try_into().unwrap_or(u64::MAX)
    }
}

/// Returns the start of a text of at most this many bytes, cut between characters.
fn prefix(text: &str, bytes: u64) -> &str {
    let max = usize::try_from(bytes).unwrap_or(usize::MAX);
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

/// The number of bytes of a request's texts that are counted: about 32,000 tokens. Counting blocks the
/// calling task, which may be asynchronous.
const MAX_COUNTED: u64 = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Pairs;

    impl Vocabulary for Pairs {
        fn count(&self, text: &str) -> u64 {
            text.len() as u64 / 2
        }

        fn per_item(&self) -> u64 {
            0
        }

        fn per_conversation(&self) -> u64 {
            0
        }
    }

    #[test]
    fn texts_beyond_the_bound_are_extrapolated() {
        let mut counter = Counter::new(&Pairs);
        counter.add("abcd");
        assert_eq!((counter.tokens(), counter.bytes()), (2, 4));
        counter.add(&"é".repeat(1 << 20));
        assert_eq!((counter.tokens(), counter.bytes()), ((1 << 20) + 2, (2 << 20) + 4));
        assert!(counter.counted <= MAX_COUNTED);
    }

    #[test]
    fn prefix_is_cut_between_characters() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(prefix("aé", 3), "aé");
        assert_eq!(prefix("é", 0), "");
    }
}
