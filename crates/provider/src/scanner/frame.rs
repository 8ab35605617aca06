use super::error_parts::ErrorParts;
use super::response_field::ErrorPart;
use super::sink::Sink;
use super::token_counts::{TokenCount, TokenCounts};
use crate::ApiError;

/// The fields that were found in the current JSON object, and in earlier ones.
#[derive(Default)]
pub(super) struct Frame {
    counts: TokenCounts,
    staged: TokenCounts,
    parts: ErrorParts,
    /// The JSON of the error in the current object.
    details: Vec<u8>,
    /// True if the current object has a field; most objects of a stream have none.
    is_staged: bool,
    /// True if the current object has a count.
    is_counted: bool,
    /// True if the current object has a field of the last event of a stream.
    is_last: bool,
    error: Option<ApiError>,
    /// True if data came before the error.
    has_data: bool,
    /// True if the last object was an event before the first output, and the number of those so far.
    is_before_output: bool,
    before_output: u8,
    /// True if the request failed, so that the whole body is an error.
    has_failed: bool,
    /// True if an object was read that begins a stream whose last event is known.
    awaits_end: bool,
    /// True if the last event of a stream was read.
    has_ended: bool,
}

impl Frame {
    /// Returns a frame for the body of a response whose headers state these counts.
    pub(super) fn with_counts(counts: TokenCounts) -> Self {
        Self { counts, ..Self::default() }
    }

    /// Returns a frame for the body of a failed request.
    pub(super) fn failed() -> Self {
        Self { has_failed: true, ..Self::default() }
    }

    pub(super) fn counts(&self) -> &TokenCounts {
        &self.counts
    }

    /// Returns true if the last event of the stream is known.
    pub(super) fn awaits_end(&self) -> bool {
        self.awaits_end
    }

    /// Returns true if the last event of a stream was read.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Marks that data was read or skipped which states no error.
    pub(super) fn add_data(&mut self) {
        self.has_data |= self.error.is_none();
    }

    /// Returns true if only a few events came before the output.
    pub(super) fn may_await_output(&self) -> bool {
        self.before_output < MOST_BEFORE_OUTPUT
    }

    /// Marks the end of an event with data.
    pub(super) fn end_event(&mut self) {
        if !std::mem::take(&mut self.is_before_output) {
            self.add_data();
        }
    }

    /// Returns true if data came before the error.
    pub(super) fn has_data(&self) -> bool {
        self.has_data
    }

    pub(super) fn error(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }

    /// Discards an object that has not ended.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_staged) {
            self.staged = TokenCounts::default();
            self.parts.clear();
            self.details.clear();
            (self.is_counted, self.is_last) = (false, false);
        }
    }

    pub(super) fn take_error(&mut self) -> Option<ApiError> {
        self.error.take()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.parts.held_bytes()
            + self.details.capacity()
            + self.error.as_ref().map_or(0, ApiError::held_bytes)
    }
}

impl Sink for Frame {
    fn count(&mut self, count: TokenCount, value: u64) {
        if value > MAX_COUNT {
            return;
        }
        (self.is_staged, self.is_counted) = (true, true);
        self.staged.set(count, value);
    }

    fn whole(&mut self) {
        (self.is_staged, self.is_counted) = (true, true);
        self.staged.set_whole();
    }

    fn end_stream(&mut self) {
        (self.is_staged, self.is_last) = (true, true);
    }

    fn is_error(&self) -> bool {
        self.parts.name_an_error()
    }

    fn begin_error(&mut self) {
        self.details.clear();
    }

    fn record(&mut self, bytes: &[u8]) {
        // The whole body of a failed request is at hand. Only the first error is kept.
        if self.has_failed || self.error.is_some() || bytes.is_empty() {
            return;
        }
        self.is_staged = true;
        self.details.reserve_exact(LONGEST_DETAILS - self.details.len());
        let free = LONGEST_DETAILS - self.details.len();
        self.details.extend_from_slice(&bytes[..bytes.len().min(free)]);
    }

    fn begin(&mut self, part: ErrorPart) {
        self.is_staged = true;
        self.parts.remove(part);
    }

    fn push(&mut self, part: ErrorPart, bytes: &[u8]) {
        self.parts.push(part, bytes);
    }

    /// Applies the counts of an object together, when the object has ended.
    fn commit(&mut self) {
        if self.is_staged {
            self.counts.update(&self.staged);
        }
    }

    fn end(&mut self) {
        self.commit();
        self.is_before_output = false;
        if self.is_staged {
            let kind = self.parts.bytes(ErrorPart::RootKind);
            self.is_before_output =
                self.before_output < MOST_BEFORE_OUTPUT && BEFORE_OUTPUT.contains(&kind);
            self.before_output += u8::from(self.is_before_output);
            self.awaits_end |= FIRST_EVENTS.contains(&kind);
            // Other objects are skipped if they have no count.
            let is_last = self.is_last || LAST_EVENTS.contains(&kind);
            self.has_ended |= (is_last && self.is_counted) || kind == MESSAGE_STOP;
            if self.error.is_none() {
                let error = self.parts.error(self.has_failed);
                let details = std::mem::take(&mut self.details);
                self.error = error.map(|error| error.with_details(&details));
            }
        }
        if !self.is_before_output {
            self.add_data();
        }
        self.clear();
    }
}

/// The types of the events that begin a stream, whose last event is one of [`LAST_EVENTS`].
const FIRST_EVENTS: &[&[u8]] = &[b"message_start", b"message-start", b"response.created"];

/// The types of the events before the first output, after which the request may fail as before.
pub(super) const BEFORE_OUTPUT: &[&[u8]] =
    &[b"response.created", b"response.queued", b"response.in_progress"];

/// The most of them: created, queued and in progress, and some that are repeated.
const MOST_BEFORE_OUTPUT: u8 = 8;

/// The only one of them without a count.
const MESSAGE_STOP: &[u8] = b"message_stop";

/// The types of the events that end a stream: Anthropic's, Cohere's, and those of OpenAI's Responses.
pub(crate) const LAST_EVENTS: &[&[u8]] = &[
    MESSAGE_STOP,
    b"message-end",
    b"response.completed",
    b"response.incomplete",
    b"response.failed",
];

/// The highest plausible count; higher ones are ignored.
const MAX_COUNT: u64 = 1_000_000_000_000_000;

/// The maximum number of bytes that are kept of the JSON of an error in a success.
const LONGEST_DETAILS: usize = 2_560;
