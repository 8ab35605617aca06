use compact_str::CompactString;
use memchr::memmem;

/// The field `model` of a `multipart/form-data` body (RFC 7578), where it stands near the front or
/// near the end: what lies between is a file.
pub(super) fn model(body: &[u8]) -> Option<CompactString> {
    if !body.starts_with(b"--") {
        return None;
    }
    let front = &body[..body.len().min(SEARCHED)];
    let end = &body[body.len().saturating_sub(SEARCHED)..];
    NAMES.iter().find_map(|name| within(front, name).or_else(|| within(end, name)))
}

fn within(body: &[u8], name: &[u8]) -> Option<CompactString> {
    memmem::find_iter(body, name).find_map(|at| value(&body[at + name.len()..]))
}

/// What stands behind the headers of the part, up to the end of its line; nothing of a file.
fn value(after_name: &[u8]) -> Option<CompactString> {
    let line = memchr::memchr(b'\n', after_name)?;
    if !after_name[..line].trim_ascii().is_empty() {
        return None;
    }
    let headers = &after_name[line..];
    let [returns, feeds] =
        [&b"\n\r\n"[..], b"\n\n"].map(|empty| Some((memmem::find(headers, empty)?, empty.len())));
    let (at, length) = returns.into_iter().chain(feeds).min()?;
    let value = &headers[at + length..];
    let value = value[..memchr::memchr(b'\n', value)?].trim_ascii();
    let is_name = !value.is_empty() && value.len() <= LONGEST;
    std::str::from_utf8(value).ok().filter(|_| is_name).map(CompactString::from)
}

const NAMES: [&[u8]; 2] = [b" name=\"model\"", b" name=model"];

/// Bytes at either end of the body that are searched.
const SEARCHED: usize = 64 * 1024;

/// A longer value is no model, in bytes.
const LONGEST: usize = 256;
