use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Decodes a path segment, and trims spaces.
///
/// # Errors
/// Returns the error text for a segment that is empty, too long, or invalid UTF-8; `empty` is the text
/// for an empty one.
pub(super) fn decode<'a>(
    segment: &'a str,
    max_length: usize,
    empty: &'static str,
) -> Result<Cow<'a, str>, &'static str> {
    // An encoded byte takes three characters.
    if segment.len() > max_length.saturating_mul(3) {
        return Err(TOO_LONG);
    }
    let text = percent_decode_str(segment).decode_utf8().map_err(|_| "invalid UTF-8")?;
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    match text.len() {
        0 => Err(empty),
        length if length > max_length => Err(TOO_LONG),
        _ => Ok(text),
    }
}

pub(super) const EMPTY_KEY: &str = "empty key provided";

pub(super) const EMPTY_ID: &str = "empty id provided";

const TOO_LONG: &str = "too long";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_is_decoded_trimmed_and_bounded() {
        let decode = |segment| decode(segment, 4, EMPTY_KEY);
        assert_eq!(decode("a%2Fb").unwrap(), "a/b");
        assert_eq!(decode("%20%20ab%20").unwrap(), "ab");
        assert_eq!(decode("abcd").unwrap(), "abcd");
        assert_eq!(decode("%20"), Err(EMPTY_KEY));
        assert_eq!(decode("abcde"), Err("too long"));
        assert_eq!(decode("%61%61%61%61%61"), Err("too long"));
        assert_eq!(decode("%ff"), Err("invalid UTF-8"));
    }
}
