//! An estimate of the number of tokens in a text.

/// Estimates the tokens of a text: one per word, group of three digits, run of punctuation, and run
/// of white space; words over ten letters have one more per ten letters.
///
/// Derived from recorded usage of OpenAI's Responses; exact for most short English prompts.
pub(super) fn count_tokens(text: &str) -> u64 {
    let mut rest = text;
    let mut count = 0;
    while let Some(first) = rest.chars().next() {
        let class = Class::of(first);
        let length = run(rest, class);
        let (piece, after) = rest.split_at(length);
        count += match class {
            Class::Letter => (length as u64).div_ceil(10),
            Class::Digit => (length as u64).div_ceil(3),
            Class::Punctuation => (length as u64).div_ceil(3),
            Class::Space => u64::from(!joins_next(piece, after)),
            Class::Other => 1,
        };
        rest = after;
    }
    count
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Punctuation,
    Space,
    Other,
}

impl Class {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' | '\'' => Self::Letter,
            '0'..='9' => Self::Digit,
            _ if character.is_whitespace() => Self::Space,
            _ if character.is_ascii() => Self::Punctuation,
            _ => Self::Other,
        }
    }
}

/// Returns the length in bytes of the run of one class at the start of `text`; `Other` does not
/// form runs.
fn run(text: &str, class: Class) -> usize {
    let next = text.char_indices().skip(1);
    let mut end = next.skip_while(|(_, c)| class != Class::Other && Class::of(*c) == class);
    end.next().map_or(text.len(), |(at, _)| at)
}

/// Returns whether a space belongs to the following word or punctuation; before a digit it is a
/// separate token.
fn joins_next(space: &str, after: &str) -> bool {
    let next = after.chars().next().map(Class::of);
    space == " " && matches!(next, Some(Class::Letter | Class::Punctuation | Class::Other))
}

#[cfg(test)]
mod tests {
    use super::count_tokens;

    #[test]
    fn short_english_matches_openai_counts() {
        assert_eq!(count_tokens("What is the capital of France?"), 7);
        assert_eq!(count_tokens("You are a helpful assistant."), 6);
        assert_eq!(count_tokens("Say hi."), 3);
        assert_eq!(count_tokens("Count to 5."), 5);
    }

    #[test]
    fn text_is_counted_to_the_end() {
        assert_eq!(count_tokens(""), 0);
        assert_eq!(count_tokens("  "), 1);
        assert_eq!(count_tokens("日本"), 2);
        assert_eq!(count_tokens("é 12345"), 4);
    }
}
