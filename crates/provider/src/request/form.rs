use compact_str::CompactString;
use memchr::memmem;
use percent_encoding::percent_decode;

use super::named::{Mention, NOT_A_STRING, Named, is_model};

/// Returns the field `model` of a form. In `multipart/form-data` (RFC 7578) it is searched for near the
/// start and the end of the body, since the middle is a file; else in `name=value` pairs, which are
/// URL-encoded or, as in recordings, one per line.
pub(super) fn model(body: &[u8]) -> Option<CompactString> {
    if !body.starts_with(b"--") {
        let start = &body[..body.len().min(SEARCHED)];
        let mut pairs = start.split(|byte| matches!(byte, b'&' | b'\n'));
        let value = pairs.find_map(|pair| pair.strip_prefix(b"model="))?;
        return named(&percent_decode(value).collect::<Vec<_>>());
    }
    find_at_ends(body, &NAMES)
}

/// Returns the field `n` of a form in `multipart/form-data`, the number of choices.
pub(super) fn choices(body: &[u8]) -> Option<u64> {
    find_at_ends(body, &CHOICES)?.parse().ok()
}

/// Returns the value of the part with one of these names, near the start or the end of a form.
fn find_at_ends(body: &[u8], names: &[&[u8]]) -> Option<CompactString> {
    let start = &body[..body.len().min(SEARCHED)];
    let end = &body[body.len().saturating_sub(SEARCHED)..];
    names.iter().find_map(|name| find(start, name).or_else(|| find(end, name)))
}

/// Returns the value of the part with this name.
fn find(body: &[u8], name: &[u8]) -> Option<CompactString> {
    memmem::find_iter(body, name).find_map(|at| value(&body[at + name.len()..]))
}

/// Returns the line after the headers of a part, unless the part is a file.
fn value(after_name: &[u8]) -> Option<CompactString> {
    let after_name = &after_name[..after_name.len().min(LONGEST_PART)];
    let line = memchr::memchr(b'\n', after_name)?;
    if !after_name[..line].trim_ascii().is_empty() {
        return None;
    }
    let headers = &after_name[line..];
    let [returns, feeds] =
        [&b"\n\r\n"[..], b"\n\n"].map(|empty| Some((memmem::find(headers, empty)?, empty.len())));
    let (at, length) = returns.into_iter().chain(feeds).min()?;
    let value = &headers[at + length..];
    named(value[..memchr::memchr(b'\n', value)?].trim_ascii())
}

/// Returns true if a body has only characters of URL-encoded pairs (URL Standard, 5.2), which excludes
/// other formats that name a model.
pub(super) fn is_pairs(body: &[u8]) -> bool {
    body.iter().all(|byte| byte.is_ascii_graphic() && !b"{}\"\\<>".contains(byte))
}

/// Returns the model that pairs name, separated by `&` or `;`.
pub(super) fn pairs(body: &[u8]) -> Named {
    let mut named = Named::default();
    for pair in body.split(|byte| b"&;".contains(byte)) {
        let (name, value) = pair.split_at(memchr::memchr(b'=', pair).unwrap_or(pair.len()));
        if is_model(&unescaped(name)) {
            let value = String::from_utf8(unescaped(value.get(1..).unwrap_or_default()));
            named.add(value.map_or(Mention::Other(NOT_A_STRING), |value| Mention::text(&value)));
        }
    }
    named
}

/// Decodes URL-encoded text, where `+` is a space (URL Standard, 5.1).
fn unescaped(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> =
        text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_decode(&spaced).collect()
}

fn named(value: &[u8]) -> Option<CompactString> {
    let is_name = !value.is_empty() && value.len() <= LONGEST;
    std::str::from_utf8(value).ok().filter(|_| is_name).map(CompactString::from)
}

const NAMES: [&[u8]; 2] = [b" name=\"model\"", b" name=model"];

const CHOICES: [&[u8]; 2] = [b" name=\"n\"", b" name=n"];

/// The number of bytes at either end of the body that are searched.
const SEARCHED: usize = 64 * 1024;

/// The maximum number of bytes after the name in which the headers and the value of a part end.
const LONGEST_PART: usize = 1_024;

/// The maximum length of a model's name, in bytes.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_read_from_pairs() {
        for (body, expected) in [
            ("model=whisper-1&file=x", Some("whisper-1")),
            ("file=x&model=owner%2Fname", Some("owner/name")),
            ("file=x\nmodel=m", Some("m")),
            ("file=x&a_model=m", None),
            ("model=", None),
            ("model=%ff", None),
        ] {
            assert_eq!(model(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }
}
