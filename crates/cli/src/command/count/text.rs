use std::io::{self, Read};

/// Returns the text of the argument, or of standard input.
///
/// # Errors
/// Returns an error of standard input.
pub(super) fn read(argument: Option<&str>) -> Result<String, String> {
    match argument {
        Some(text) if text != "-" => Ok(text.to_owned()),
        _ => read_from(io::stdin().lock(), LONGEST),
    }
}

fn read_from(input: impl Read, longest: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = input.take(longest + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("standard input: cannot read: {error}"))?;
    if bytes.len() as u64 > longest {
        return Err(format!("standard input: longer than {} MiB", longest >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("standard input: invalid UTF-8 at byte {at}")
    })
}

/// Splits a text into pieces of whole lines, so that their tokens can be counted separately.
///
/// Vocabularies split a text before a letter at the start of a line. A piece without such a line is
/// cut between characters, which may count one token twice.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(cut(rest));
        rest = after;
        Some(piece)
    })
}

fn cut(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let end = (0..=PIECE).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(PIECE);
    let bytes = text.as_bytes();
    let begins = |&at: &usize| bytes[at - 1] == b'\n' && bytes[at].is_ascii_alphabetic();
    (1..end).rev().find(begins).unwrap_or(end)
}

/// The maximum length of the input, in bytes.
const LONGEST: u64 = 64 << 20;

/// The length from which the tokenizer estimates, in bytes.
const PIECE: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_or_invalid_input_is_rejected_with_reason() {
        assert_eq!(read_from(&b"abc"[..], 3), Ok("abc".to_owned()));
        let error = read_from(&[b'a'; (1 << 20) + 1][..], 1 << 20).expect_err("too long");
        assert_eq!(error, "standard input: longer than 1 MiB");
        let error = read_from(&b"ab\xffc"[..], 9).expect_err("invalid UTF-8");
        assert_eq!(error, "standard input: invalid UTF-8 at byte 2");
    }

    #[test]
    fn pieces_cover_text_and_end_at_line_starts() {
        let line = "the quick brown fox\n";
        for text in [line.repeat(20_000), "é".repeat(200_000), String::new(), "a".to_owned()] {
            let all: Vec<&str> = pieces(&text).collect();
            assert!(all.iter().all(|piece| piece.len() <= PIECE));
            assert_eq!(all.concat(), text);
        }
        assert!(pieces(&line.repeat(20_000)).all(|piece| piece.ends_with('\n')));
        assert_eq!(pieces("").count(), 0);
    }
}
