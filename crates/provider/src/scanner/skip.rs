//! Fast skipping of strings and numbers.

use memchr::{memchr, memchr2};

/// Returns the index of the first quote in a string that isn't escaped. The bytes must begin outside an
/// escape.
pub(super) fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let quote = from + next_quote(&bytes[from..])?;
        if !ends_in_escape(&bytes[..quote]) {
            return Some(quote);
        }
        from = quote + 1;
    }
}

/// Returns the index of the first quote or backslash.
pub(super) fn quote_or_escape(bytes: &[u8]) -> Option<usize> {
    let near = |word| first(word, b'"') | first(word, b'\\');
    match find_near(bytes, near) {
        Ok(at) => Some(at),
        Err(rest) => memchr2(b'"', b'\\', &bytes[rest..]).map(|at| at + rest),
    }
}

/// Returns true if the next byte belongs to an escape: the bytes end in an odd number of backslashes.
pub(super) fn ends_in_escape(bytes: &[u8]) -> bool {
    bytes.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Returns the number of leading bytes without quotes and brackets, in whole runs, which the processor
/// compares together.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let is_structure = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
    let is_plain = |run: &&[u8]| !run.iter().fold(false, |any, byte| any | is_structure(byte));
    bytes.chunks_exact(RUN).take_while(is_plain).count() * RUN
}

fn next_quote(bytes: &[u8]) -> Option<usize> {
    match find_near(bytes, |word| first(word, b'"')) {
        Ok(at) => Some(at),
        Err(rest) => memchr(b'"', &bytes[rest..]).map(|at| at + rest),
    }
}

/// Searches the first words for a byte that `marks` marks, since most strings are too short to repay a
/// call of `memchr`. Returns the searched length as the error if there is none.
fn find_near(bytes: &[u8], marks: impl Fn(u64) -> u64) -> Result<usize, usize> {
    let (words, _) = bytes.as_chunks::<WORD>();
    let words = &words[..words.len().min(NEAR)];
    for (at, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return Ok(at * WORD + marks.trailing_zeros() as usize / 8);
        }
    }
    Err(words.len() * WORD)
}

/// Returns a word with a mark at the first byte that equals `byte`; marks at higher bytes may be wrong.
fn first(word: u64, byte: u8) -> u64 {
    let ones = u64::from_ne_bytes([1; WORD]);
    let zero = word ^ (ones * u64::from(byte));
    zero.wrapping_sub(ones) & !zero & (ones << 7)
}

/// The number of bytes that the processor compares together.
const RUN: usize = 32;

/// The number of bytes in a word.
const WORD: usize = 8;

/// The number of words that are searched before `memchr` is called.
const NEAR: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_quote_or_escape_is_found_at_any_offset() {
        for at in 0..40 {
            for (end, other) in [(b'"', b'#'), (b'\\', b']'), (b'"', 0xA2), (b'\\', 0xDC)] {
                let mut text = [other; 48];
                (text[at], text[at + 1]) = (end, b'"');
                assert_eq!(quote_or_escape(&text), Some(at));
                assert_eq!(next_quote(&text), Some(if end == b'"' { at } else { at + 1 }));
            }
        }
        assert_eq!(quote_or_escape(b"123456789"), None);
    }

    #[test]
    fn quote_after_even_number_of_backslashes_closes() {
        for (text, end) in [
            (r#"""#, Some(0)),
            (r#"a\"b"c"#, Some(4)),
            (r#"a\\"b"#, Some(3)),
            (r#"\\\"\\" "#, Some(6)),
            (r#"a long text \"quoted\" \n and its end" "#, Some(37)),
            (r#"none\""#, None),
            ("", None),
        ] {
            assert_eq!(closing_quote(text.as_bytes()), end, "{text}");
        }
    }
}
