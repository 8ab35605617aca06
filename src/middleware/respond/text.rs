use bytes::Bytes;
use http::HeaderValue;

/// Returns `text` as the value of a header field, or `None` if it is empty.
pub(super) fn header(text: Bytes) -> Option<HeaderValue> {
    let has_text = !text.is_empty();
    has_text.then(|| HeaderValue::from_maybe_shared(text).ok()).flatten()
}

/// Writes a name and an integer of at most 15 digits, the maximum in a structured field.
pub(super) fn parameter(text: &mut Vec<u8>, name: &[u8], amount: u64) {
    text.extend_from_slice(name);
    number(text, amount.min(GREATEST));
}

/// Writes an integer.
pub(super) fn number(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a part of a string that is valid both in a structured field and in JSON. Replaces quotes,
/// backslashes and all bytes that aren't printable ASCII by `_`.
pub(super) fn push(text: &mut Vec<u8>, part: &str) {
    if is_plain(part) {
        text.extend_from_slice(part.as_bytes());
    } else {
        text.extend(part.bytes().map(|byte| if is_plain_byte(byte) { byte } else { b'_' }));
    }
}

/// Writes a further member of a JSON object, without escaping its value.
pub(super) fn plain_member(text: &mut Vec<u8>, name: &str, value: &str) {
    for part in [",\"", name, "\":\"", value, "\""] {
        text.extend_from_slice(part.as_bytes());
    }
}

/// Writes a further member of a JSON object, and escapes its value.
pub(super) fn member(text: &mut Vec<u8>, name: &str, value: &str) {
    if is_plain(value) {
        return plain_member(text, name, value);
    }
    for part in [",\"", name, "\":"] {
        text.extend_from_slice(part.as_bytes());
    }
    serde_json::to_writer(text, value).expect("writing to a vector succeeds");
}

fn is_plain(part: &str) -> bool {
    part.bytes().all(is_plain_byte)
}

fn is_plain_byte(byte: u8) -> bool {
    PLAIN[usize::from(byte)]
}

/// The bytes that need no escaping. A table costs less per byte than comparisons.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b' ';
    while byte <= b'~' {
        plain[byte as usize] = byte != b'"' && byte != b'\\';
        byte += 1;
    }
    plain
};

const GREATEST: u64 = 999_999_999_999_999;
