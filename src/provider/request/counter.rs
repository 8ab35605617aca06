use std::fmt;

/// How a model reads texts: exact counts, where its vocabulary is at hand.
pub(in crate::provider) trait Vocabulary: fmt::Debug + Sync {
    /// The tokens of a text.
    fn count(&self, text: &str) -> u64;

    /// Tokens around each item of a conversation.
    fn item(&self) -> u64;

    /// Tokens that a conversation takes once.
    fn answer(&self) -> u64;
}

/// Counts the tokens of texts as they pass, and keeps none of them.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) vocabulary: &'static dyn Vocabulary,
    /// Bytes of all texts.
    bytes: u64,
    /// Bytes of those that were counted, and their tokens.
    counted: u64,
    tokens: u64,
}

impl Counter {
    pub(super) fn new(vocabulary: &'static dyn Vocabulary) -> Self {
        Self { vocabulary, bytes: 0, counted: 0, tokens: 0 }
    }

    pub(super) fn add(&mut self, text: &str) {
        let within = prefix(text, MOST.saturating_sub(self.counted));
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        self.counted += within.len() as u64;
        self.tokens = self.tokens.saturating_add(self.vocabulary.count(within));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The tokens of all texts; what is past the most that is counted has as many for its bytes as
    /// what is before.
    pub(super) fn tokens(&self) -> u64 {
        if self.counted == self.bytes {
            return self.tokens;
        }
        let tokens = u128::from(self.tokens) * u128::from(self.bytes);
        (tokens / u128::from(self.counted.max(1))).try_into().unwrap_or(u64::MAX)
    }
}

/// At most so many bytes of a text, cut between characters.
fn prefix(text: &str, bytes: u64) -> &str {
    let most = usize::try_from(bytes).unwrap_or(usize::MAX);
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

/// Bytes of text of a request that are counted: some 32,000 tokens. A request is read where it is
/// called, maybe by an async task, which must not be held up for long.
const MOST: u64 = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Pairs;

    impl Vocabulary for Pairs {
        fn count(&self, text: &str) -> u64 {
            text.len() as u64 / 2
        }

        fn item(&self) -> u64 {
            0
        }

        fn answer(&self) -> u64 {
            0
        }
    }

    #[test]
    fn short_texts_are_counted_and_the_rest_of_long_ones_is_extrapolated() {
        let mut counter = Counter::new(&Pairs);
        counter.add("abcd");
        assert_eq!((counter.tokens(), counter.bytes()), (2, 4));
        counter.add(&"é".repeat(1 << 20));
        assert_eq!((counter.tokens(), counter.bytes()), ((1 << 20) + 2, (2 << 20) + 4));
        assert!(counter.counted <= MOST);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(prefix("aé", 3), "aé");
        assert_eq!(prefix("é", 0), "");
    }
}
