use smallvec::SmallVec;

use super::response_field::ErrorPart;
use crate::ApiError;

/// The texts of an error, whose lengths are bounded and whose buffers are reused.
#[derive(Default)]
pub(super) struct ErrorParts([Text; 10]);

/// A text that is stored inline if it is short, since successes have an `object` or `type` too.
type Text = SmallVec<[u8; SHORT]>;

impl ErrorParts {
    /// Returns the error that the texts state. Texts at the root state an error only if the request has
    /// failed or the object names itself an error.
    pub(super) fn error(&self, has_failed: bool) -> Option<ApiError> {
        let is = |part, text: &[u8]| self.0[part as usize][..] == *text;
        let nested = [ErrorPart::Code, ErrorPart::Kind, ErrorPart::Message];
        if nested.iter().any(|part| !is(*part, b"")) {
            return self.named(nested);
        }
        if !is(ErrorPart::StatusCode, b"") && !is(ErrorPart::StatusCode, b"0") {
            return ApiError::new(
                &self.text(ErrorPart::StatusCode),
                "",
                &self.text(ErrorPart::StatusMessage),
            );
        }
        (has_failed || self.name_an_error())
            .then(|| self.named([ErrorPart::RootCode, ErrorPart::RootKind, ErrorPart::RootMessage]))
            .flatten()
    }

    /// Returns true if the object names itself an error.
    pub(super) fn name_an_error(&self) -> bool {
        [ErrorPart::RootKind, ErrorPart::RootObject]
            .iter()
            .any(|part| self.0[*part as usize][..] == *b"error")
    }

    /// Returns the error with these parts.
    fn named(&self, [code, kind, message]: [ErrorPart; 3]) -> Option<ApiError> {
        let kind = self.text(kind);
        // `"type": "error"` doesn't state the kind of error.
        let kind = if kind == "error" { "" } else { &kind };
        ApiError::new(&self.text(code), kind, &self.text(message))
    }

    /// Returns a text, with `?` for invalid bytes, so that it is not longer than what was kept.
    fn text(&self, part: ErrorPart) -> String {
        let chunks = self.0[part as usize].utf8_chunks();
        let mark = |bytes: &[u8]| if bytes.is_empty() { "" } else { "?" };
        chunks.flat_map(|chunk| [chunk.valid(), mark(chunk.invalid())]).collect()
    }

    /// Returns a text as it was sent.
    pub(super) fn bytes(&self, part: ErrorPart) -> &[u8] {
        &self.0[part as usize]
    }

    /// Forgets a text.
    pub(super) fn remove(&mut self, part: ErrorPart) {
        self.0[part as usize].clear();
    }

    /// Returns the bytes that are held outside of the parts.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.iter().filter(|text| text.spilled()).map(Text::capacity).sum()
    }

    pub(super) fn push(&mut self, part: ErrorPart, bytes: &[u8]) {
        let bound = match part {
            ErrorPart::Message | ErrorPart::RootMessage | ErrorPart::StatusMessage => {
                LONGEST_MESSAGE
            }
            _ => LONGEST_CODE,
        };
        let text = &mut self.0[part as usize];
        let free = bound.saturating_sub(text.len());
        text.extend_from_slice(&bytes[..bytes.len().min(free)]);
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(Text::clear);
    }
}

/// The maximum number of bytes that are kept of a message. The capacity of its buffer is at most twice
/// that.
const LONGEST_MESSAGE: usize = 1_024;

/// The maximum number of bytes that are kept of a code or a type.
const LONGEST_CODE: usize = 64;

/// The number of bytes that are kept without an allocation: enough for the types of nearly all events of
/// a stream.
const SHORT: usize = 40;
