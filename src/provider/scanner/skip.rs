//! Passing over what isn't wanted, at the speed of memory.

use memchr::memchr;

/// The first quote in a string that no backslash escapes. The bytes begin outside an escape.
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

/// Whether the byte after these belongs to an escape: behind an odd number of backslashes.
pub(super) fn ends_in_escape(bytes: &[u8]) -> bool {
    bytes.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Bytes without quotes or brackets, in whole runs that the processor can look at together.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let is_structure = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
    let is_plain = |run: &&[u8]| !run.iter().fold(false, |any, byte| any | is_structure(byte));
    bytes.chunks_exact(RUN).take_while(is_plain).count() * RUN
}

fn next_quote(bytes: &[u8]) -> Option<usize> {
    // Most strings are shorter than what a call of `memchr` costs.
    let near = bytes.iter().take(NEAR).position(|byte| *byte == b'"');
    if near.is_some() || bytes.len() <= NEAR {
        return near;
    }
    memchr(b'"', &bytes[NEAR..]).map(|at| at + NEAR)
}

/// Bytes that the processor looks at together.
const RUN: usize = 32;

/// Bytes that are looked at one by one, before `memchr` is called.
const NEAR: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_closes_behind_an_even_number_of_backslashes() {
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
