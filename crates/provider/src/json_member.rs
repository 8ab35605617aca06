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

/// Returns the members of a JSON text whose values are strings or numbers, at any depth, in order: names, and values
/// without quotes and escapes. The text may be truncated. JSON in a string is searched too, in one that states an error:
/// others may be what the model generated.
pub(super) fn all(json: &[u8]) -> Vec<(String, String)> {
    let json = String::from_utf8_lossy(&json[..json.len().min(MAX_BODY)]);
    let mut members = Vec::new();
    add_members(&json, &mut members, true);
    members
}

/// The names of strings that state an error in words.
pub(super) const MESSAGES: &[&str] = &[
    "error",
    "message",
    "Message",
    "msg",
    "detail",
    "details",
    "description",
    "reason",
    "raw",
    "error_message",
    "errorMessage",
    "error_msg",
    "err_msg",
    "status_msg",
    "error_description",
];

/// Other names of strings in which gateways pass on the error of another provider.
const PASSED_ON: &[&str] = &["body", "OriginalMessage"];

fn add_members(json: &str, members: &mut Vec<(String, String)>, is_root: bool) {
    let mut rest = json;
    while let Some(at) = rest.find('"').filter(|_| members.len() < MAX_MEMBERS) {
        let (name, after) = string(&rest[at + 1..]);
        let Some(value) = after.trim_start().strip_prefix(':').map(str::trim_start) else {
            rest = after;
            continue;
        };
        rest = value;
        if let Some(text) = value.strip_prefix('"') {
            let (text, after) = string(text);
            rest = after;
            let is_error = || MESSAGES.contains(&&*name) || PASSED_ON.contains(&&*name);
            let words = if is_root && is_error() {
                let (words, json) = split(&text);
                add_members(json, members, false);
                words
            } else {
                text
            };
            if !words.is_empty() {
                members.push((name, words));
            }
        } else if value.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let is_end = |c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E');
            let (number, after) = value.split_at(value.find(is_end).unwrap_or(value.len()));
            members.push((name, number.to_owned()));
            rest = after;
        }
    }
}

/// Splits a message into its words and the JSON among them in which a gateway passes on an error. Other JSON may be part of
/// the request.
pub(super) fn split(text: &str) -> (String, &str) {
    let last_name = ["\":", "\" :"].iter().filter_map(|end| text.rfind(end)).max();
    // Text that only begins like JSON has no members.
    let is_json = |at: &usize| {
        last_name.is_some_and(|last| *at < last)
            && text[at + 1..].trim_start().starts_with(['"', '{'])
    };
    let begin = text.match_indices(['{', '[']).map(|(at, _)| at).find(is_json);
    let is_error = |at: &usize| text[..*at].trim().is_empty() || text[*at..].contains("\"error\"");
    let Some(begin) = begin.filter(is_error) else { return (text.to_owned(), "") };
    let end = text.rfind(['}', ']']).map_or(text.len(), |at| at + 1).max(begin);
    let words = [text[..begin].trim(), text[end..].trim()].join(" ");
    (words.trim().to_owned(), &text[begin..end])
}

/// Returns the text of a string, after its quote, and the rest after the closing one.
fn string(json: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = json.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &json[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n' | 'r')) => text.push('\n'),
                Some((_, 't' | 'b' | 'f')) => text.push(' '),
                Some((at, 'u')) => {
                    let code = json.get(at + 1..at + 5);
                    let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
                    text.push(code.and_then(char::from_u32).unwrap_or(' '));
                    if code.is_some() {
                        chars.nth(3);
                    }
                }
                Some((_, other)) => text.push(other),
                None => {}
            },
            _ => text.push(c),
        }
    }
    (text, "")
}

/// The number of members that are read.
const MAX_MEMBERS: usize = 200;

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

    #[test]
    fn all_members_are_found_without_escapes() {
        let json = br#"[{"a":{"x" : "1\u00b5\n"},"b":"\"x\":\"2s\"","c":[{"x":-3.5},"d",null],"raw":"{\"e\":\"f\"}","g":"cut"#;
        let found = all(json);
        let found: Vec<_> = found.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let expected =
            [("x", "1µ\n"), ("b", "\"x\":\"2s\""), ("x", "-3.5"), ("e", "f"), ("g", "cut")];
        assert_eq!(found, expected);
        assert_eq!(all(b"\"x").len() + all(b"<p class=\"a\">").len() + all(b"").len(), 0);
    }
}
