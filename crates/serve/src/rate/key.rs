use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The text of a segment of a path, without the spaces around it.
///
/// # Errors
/// It is empty, too long, or no text: what its client is told.
pub(super) fn read<'a>(
    segment: &'a str,
    (empty, longest): (&'static str, usize),
) -> Result<Cow<'a, str>, &'static str> {
    // Encoded, every byte takes three.
    if segment.len() > longest.saturating_mul(3) {
        return Err(TOO_LONG);
    }
    let text = percent_decode_str(segment).decode_utf8().map_err(|_| "not UTF-8")?;
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    match text.len() {
        0 => Err(empty),
        length if length > longest => Err(TOO_LONG),
        _ => Ok(text),
    }
}

pub(super) const NO_KEY: &str = "empty key provided";

pub(super) const NO_ID: &str = "empty id provided";

const TOO_LONG: &str = "too long";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_decoded_trimmed_and_bounded() {
        let read = |segment| read(segment, (NO_KEY, 4));
        assert_eq!(read("a%2Fb").unwrap(), "a/b");
        assert_eq!(read("%20%20ab%20").unwrap(), "ab");
        assert_eq!(read("abcd").unwrap(), "abcd");
        assert_eq!(read("%20"), Err(NO_KEY));
        assert_eq!(read("abcde"), Err("too long"));
        assert_eq!(read("%61%61%61%61%61"), Err("too long"));
        assert_eq!(read("%ff"), Err("not UTF-8"));
    }
}
