use smallvec::SmallVec;

use super::fields::Fields;
use super::lexer::Lexer;
use super::response_field::ErrorPart;
use super::sink::Sink;
use super::token_counts::{TokenCount, TokenCounts};
use crate::provider::ApiError;

/// The fields that were found in the current JSON object, and in earlier ones.
#[derive(Default)]
pub(super) struct Frame {
    counts: TokenCounts,
    staged: TokenCounts,
    parts: ErrorParts,
    /// True if the current object has a field; most objects of a stream have none.
    is_staged: bool,
    error: Option<ApiError>,
    /// True if the request failed, so that the whole body is an error.
    has_failed: bool,
}

impl Frame {
    /// For the body of a failed request.
    pub(super) fn failed() -> Self {
        Self { has_failed: true, ..Self::default() }
    }

    pub(super) fn counts(&self) -> &TokenCounts {
        &self.counts
    }

    /// TokenCounts that were stated before the body; the body's own win.
    pub(super) fn begin_with(&mut self, counts: TokenCounts) {
        self.counts = counts;
    }

    /// Forgets an object that has not ended.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_staged) {
            self.staged = TokenCounts::default();
            self.parts.clear();
        }
    }

    pub(super) fn take_error(&mut self) -> Option<ApiError> {
        self.error.take()
    }

    pub(super) fn held_bytes(&self) -> usize {
        let spilled = self.parts.0.iter().filter(|text| text.spilled());
        spilled.map(Text::capacity).sum::<usize>()
            + self.error.as_ref().map_or(0, |error| error.message().len())
    }
}

impl Sink for Frame {
    fn count(&mut self, count: TokenCount, value: u64) {
        if value > MOST_TOKENS {
            return;
        }
        self.is_staged = true;
        self.staged.set(count, value);
    }

    fn whole(&mut self) {
        self.is_staged = true;
        self.staged.set_whole();
    }

    fn begin(&mut self, part: ErrorPart) {
        self.is_staged = true;
        self.parts.of(part).clear();
    }

    fn push(&mut self, part: ErrorPart, bytes: &[u8]) {
        self.parts.push(part, bytes);
    }

    /// TokenCounts become final together, when the object that states them has ended.
    fn commit(&mut self) {
        if self.is_staged {
            self.counts.update(&self.staged);
        }
    }

    fn end(&mut self) {
        self.commit();
        if self.is_staged && self.error.is_none() {
            self.error = self.parts.error(self.has_failed);
        }
        self.clear();
    }
}

/// The texts of an error, bounded; their buffers are used again.
#[derive(Default)]
pub(in crate::provider) struct ErrorParts([Text; 8]);

/// In place while it is short: every success states its `object` or `type` too.
type Text = SmallVec<[u8; SHORT]>;

impl ErrorParts {
    /// The error that the body of a failed request tells, even one that is cut off.
    pub(in crate::provider) fn read(body: &[u8]) -> Option<ApiError> {
        let mut frame = Frame::failed();
        const ERRORS: &Fields = &Fields::new(&[]);
        Lexer::new(ERRORS).feed(body, &mut frame);
        frame.end();
        frame.take_error()
    }

    /// The error that the texts make. Those at the root make one only where they are known to: the
    /// request has failed, or the object calls itself an error.
    fn error(&self, has_failed: bool) -> Option<ApiError> {
        let is = |part, text: &[u8]| self.0[part as usize][..] == *text;
        let nested = [ErrorPart::Code, ErrorPart::Kind, ErrorPart::Message];
        if nested.iter().any(|part| !is(*part, b"")) {
            return self.named(nested);
        }
        let calls_itself = is(ErrorPart::RootKind, b"error") || is(ErrorPart::RootObject, b"error");
        let at_root = has_failed || calls_itself;
        at_root
            .then(|| self.named([ErrorPart::RootCode, ErrorPart::RootKind, ErrorPart::RootMessage]))
            .flatten()
    }

    fn named(&self, [code, kind, message]: [ErrorPart; 3]) -> Option<ApiError> {
        let kind = self.text(kind);
        // `"type": "error"` says that it is one, not which.
        let kind = if kind == "error" { "" } else { &kind };
        ApiError::new(&self.text(code), kind, &self.text(message))
    }

    fn text(&self, part: ErrorPart) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0[part as usize])
    }

    fn of(&mut self, part: ErrorPart) -> &mut Text {
        &mut self.0[part as usize]
    }

    fn push(&mut self, part: ErrorPart, bytes: &[u8]) {
        let bound = match part {
            ErrorPart::Message | ErrorPart::RootMessage => LONGEST_MESSAGE,
            _ => LONGEST_SIGN,
        };
        let text = self.of(part);
        let room = bound.saturating_sub(text.len());
        text.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(Text::clear);
    }
}

/// No response uses more: a number above is a mistake, and left out.
const MOST_TOKENS: u64 = 1_000_000_000_000_000;

/// Bytes of a message that are kept. The capacity of its buffer is at most twice that.
const LONGEST_MESSAGE: usize = 1_024;

/// Bytes of a code or a type that are kept.
const LONGEST_SIGN: usize = 64;

/// Bytes that are kept without an allocation: enough for the names of nearly all events of a stream.
const SHORT: usize = 40;
