//! A multipart form (RFC 7578), read to its end to find every field.

use std::borrow::Cow;

use memchr::memmem;
use percent_encoding::percent_decode_str;

use super::named::{Mention, NOT_A_STRING, Named, is_model};
use super::parameters::parameters;
use super::unreadable::UnreadableRequest;

/// Returns the model that the form names.
///
/// # Errors
/// [`UnreadableRequest`] if a server may find other parts in the form.
pub(super) fn read(boundary: &str, body: &[u8]) -> Result<Named, UnreadableRequest> {
    let mut named = Named::default();
    let mut body = body.strip_prefix(b"\r\n").unwrap_or(body);
    let delimiter = format!("\n--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    body = body
        .strip_prefix(&delimiter.as_bytes()[1..])
        .ok_or_else(|| UnreadableRequest::body(NO_START))?;
    loop {
        if let Some(after) = body.strip_prefix(b"--") {
            return match after.trim_ascii().is_empty() {
                true => Ok(named),
                false => Err(UnreadableRequest::body(AFTER_END)),
            };
        }
        let blank = body.iter().take_while(|byte| b" \t".contains(byte)).count();
        let part =
            body[blank..].strip_prefix(b"\r\n").ok_or_else(|| UnreadableRequest::body(NO_LINE))?;
        let end = finder.find(part).ok_or_else(|| UnreadableRequest::body(NO_END))?;
        body = &part[end + delimiter.len()..];
        let part =
            part[..end].strip_suffix(b"\r").ok_or_else(|| UnreadableRequest::body(NO_LINE))?;
        if let Some(mention) = mention(part)? {
            named.add(mention);
        }
    }
}

/// Returns the model that a part names, if it is the field of the model.
fn mention(part: &[u8]) -> Result<Option<Mention>, UnreadableRequest> {
    let end = memmem::find(part, b"\r\n\r\n").ok_or_else(|| UnreadableRequest::body(NO_HEAD))?;
    let (head, value) = (String::from_utf8_lossy(&part[..end]), &part[end + 4..]);
    let (mut disposition, mut is_encoded) = (None, false);
    for line in head.split("\r\n") {
        let (name, field) = line.split_once(':').ok_or_else(|| UnreadableRequest::body(NO_HEAD))?;
        if line.starts_with([' ', '\t']) || line.contains(['\r', '\n', '\0']) {
            return Err(UnreadableRequest::body(NO_HEAD));
        }
        let name = name.trim();
        if name.eq_ignore_ascii_case("content-disposition")
            && disposition.replace(field.trim()).is_some()
        {
            return Err(UnreadableRequest::body(NO_NAME));
        }
        is_encoded |= name.eq_ignore_ascii_case("content-transfer-encoding")
            && !PLAIN.iter().any(|plain| field.trim().eq_ignore_ascii_case(plain));
    }
    let names_model =
        disposition.and_then(names_model).ok_or_else(|| UnreadableRequest::body(NO_NAME))?;
    Ok(names_model.then(|| match std::str::from_utf8(value) {
        _ if is_encoded => Mention::Other(ENCODED),
        Ok(text) if text.len() <= LONGEST => Mention::text(text),
        _ => Mention::Other(NOT_A_STRING),
    }))
}

/// Returns true if any server may read a part as the field of the model; `None` if it doesn't have
/// exactly one name.
fn names_model(disposition: &str) -> Option<bool> {
    let (kind, _) = disposition.split_once(';')?;
    let mut names: Option<Cow<'_, str>> = None;
    let mut is_odd = !kind.trim().eq_ignore_ascii_case("form-data");
    parameters(disposition, |name, value| match name {
        _ if name.eq_ignore_ascii_case("name") => is_odd |= names.replace(value).is_some(),
        _ if name.eq_ignore_ascii_case("name*") => is_odd = true,
        _ => {}
    })?;
    let decoded: Cow<'_, [u8]> = percent_decode_str(names.as_deref()?).into();
    (!is_odd).then(|| is_model(&decoded))
}

/// Encodings that leave a value as it is.
const PLAIN: [&str; 3] = ["7bit", "8bit", "binary"];

/// The maximum length of a model's name, in bytes.
const LONGEST: usize = 256;

const NO_START: &str =
    "the form doesn't begin with the boundary in its `content-type`; use the same one";

const NO_LINE: &str = "a boundary of the form is not on a line by itself, or lines end without CRLF; \
                       write the form by RFC 7578";

const NO_END: &str = "the form ends before its last boundary; send all of it";

const AFTER_END: &str = "the form has data after its last boundary; remove it";

const NO_HEAD: &str = "a part of the form has invalid header fields; write them by RFC 7578, one on a \
                       line";

const NO_NAME: &str = "a part of the form has no name, or more than one; give it one `name` in its \
                       `content-disposition: form-data`";

const ENCODED: &str = "the field has a `content-transfer-encoding`; send its value without one";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_field_is_found_at_any_position() {
        let part = |head: &str, value: &str| format!("--b\r\n{head}\r\n\r\n{value}\r\n");
        let form = |name: &str, value: &str| {
            part(&format!("Content-Disposition: form-data; {name}"), value)
        };
        let model = |body: &str| {
            let named = read("b", body.as_bytes()).ok()?;
            named.check().is_ok().then_some(named.model).flatten()
        };
        for (body, expected) in [
            (form("name=\"model\"", "m") + "--b--", Some("m")),
            (form("name=\"file\"; filename=\"model\"", "m") + "--b--\r\n", None),
            (form("filename=\"a;b\\\"c\"; name=\"model\"", "m") + "--b--\r\n", Some("m")),
            (
                form("name=file", &"x".repeat(1 << 20)) + &form("name=model", "m") + "--b--",
                Some("m"),
            ),
            (form("name=file", "--b\r\n\r\n-b--b--") + "--b--", None),
            (form("name=\"model\"", "m"), None),
            ("--b--".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(model(&body).as_deref(), expected, "{body:.300}");
        }
    }
}
