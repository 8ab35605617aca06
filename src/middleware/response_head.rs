//! The parts of a response's head that say how to read its body.

use http::{HeaderMap, HeaderValue, StatusCode};

/// Returns `true` for the status codes of a refusal: 429, 503 and 529.
pub(super) fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 503 | 529)
}

/// Returns `true` if the body isn't compressed.
pub(super) fn is_plain(headers: &HeaderMap) -> bool {
    encoding(headers).is_none()
}

/// Returns the content encoding, unless it is `identity`.
pub(super) fn encoding(headers: &HeaderMap) -> Option<&HeaderValue> {
    let encoding = headers.get(http::header::CONTENT_ENCODING)?;
    (!encoding.as_bytes().eq_ignore_ascii_case(b"identity")).then_some(encoding)
}
