/// Replaces each escape of an unpaired surrogate in a JSON text by the escape of U+FFFD, which has the
/// same length. Returns `None` if there is none. RFC 8259 (8.2) allows unpaired surrogates, but UTF-8
/// can't represent them.
pub(super) fn replace_unpaired(json: &[u8]) -> Option<Vec<u8>> {
    let mut text = json.to_vec();
    let (mut at, mut is_changed) = (0, false);
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        let low = || unit(&text, at + 6).filter(|unit| LOW.contains(unit));
        match unit(&text, at) {
            Some(unit) if HIGH.contains(&unit) && low().is_some() => at += 12,
            Some(unit) if HIGH.contains(&unit) || LOW.contains(&unit) => {
                text[at..at + 6].copy_from_slice(b"\\ufffd");
                (at, is_changed) = (at + 6, true);
            }
            // The escaped character may be a backslash.
            _ => at += 2,
        }
    }
    is_changed.then_some(text)
}

/// Returns the UTF-16 code unit that the escape at this index encodes.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(digits, 16).ok()
}

const HIGH: std::ops::Range<u16> = 0xD800..0xDC00;
const LOW: std::ops::Range<u16> = 0xDC00..0xE000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpaired_surrogates_are_replaced_and_pairs_are_kept() {
        for (text, expected) in [
            (r#"{"a": "abc \ud83d"}"#, Some(r#"{"a": "abc \ufffd"}"#)),
            (r#""\ud83d\ude00 \ude00\ud83d""#, Some(r#""\ud83d\ude00 \ufffd\ufffd""#)),
            (r#""\\ud83d \u00e9""#, None),
            (r#""\ud83"#, None),
            (r#""\ud83d\"#, Some(r#""\ufffd\"#)),
            (r#""\"#, None),
        ] {
            let replaced = replace_unpaired(text.as_bytes());
            assert_eq!(replaced.as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }
}
