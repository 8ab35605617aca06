use std::str;

use memchr::memmem;

/// Returns the values of all members of this name in a JSON text, at any depth, in order: strings
/// without quotes and with their escapes, numbers as written. The text may be truncated. JSON within a
/// string is not searched, because its quotes are escaped.
pub(super) fn values<'b>(json: &'b [u8], name: &str) -> impl Iterator<Item = &'b str> {
    let json = &json[..json.len().min(MAX_BODY)];
    let quoted = format!("\"{name}\"").into_bytes();
    let positions: Vec<usize> = memmem::find_iter(json, &quoted).collect();
    positions.into_iter().filter_map(move |at| value(&json[at + quoted.len()..]))
}

fn value(after_name: &[u8]) -> Option<&str> {
    let value = after_name.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let (value, ends): (_, fn(&u8) -> bool) = match value.strip_prefix(b"\"") {
        Some(text) => (text, |byte| matches!(byte, b'"' | b'\\')),
        None => (value, |byte| !matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')),
    };
    let end = value.iter().position(ends).unwrap_or(value.len());
    str::from_utf8(&value[..end]).ok().filter(|value| !value.is_empty())
}

/// The number of bytes of an error body that are searched.
pub(super) const MAX_BODY: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_at_any_depth_but_not_in_strings() {
        let json = br#"[{"a":{"x" : "1s"},"b":"\"x\":\"2s\"","c":[{"x":3.5},{"x":null},{"x":"4"#;
        assert_eq!(values(json, "x").collect::<Vec<_>>(), ["1s", "3.5", "4"]);
        assert_eq!(values(b"\"x\"", "x").count(), 0);
        assert_eq!(values(b"", "x").count(), 0);
    }
}
