//! Reads usage and errors from response bodies as they stream through.

mod chunk;
mod crc;
mod error_body;
mod error_parts;
mod event_stream;
mod field_table;
mod fields;
mod frame;
mod headers;
mod key;
mod known_fields;
mod lexer;
mod output_size;
mod response_field;
mod sink;
mod skip;
mod sniff;
mod sse;
mod state;
mod token_counts;
mod unescape;

use std::fmt;

use http::HeaderMap;
use paceline_limiter::quota::Usage;

pub(super) use field_table::FieldTable;
pub(super) use frame::LAST_EVENTS;
pub use response_field::ResponseField;
pub(super) use response_field::check as check_fields;
pub use token_counts::TokenCount;
pub(super) use token_counts::TokenCounts;

use self::field_table::KNOWN_FIELDS;
use self::frame::Frame;
use self::lexer::Lexer;
use self::output_size::OutputSize;
use self::sniff::{Format, Sniff};
use crate::{ApiError, Profile};

/// Reads usage and in-band errors from a response body, in chunks of any size.
///
/// | format | used by | read |
/// |---|---|---|
/// | JSON, one object or several consecutive ones | most responses; NDJSON (Ollama, Cohere v1) | each object |
/// | JSON, an array of objects | Gemini's `streamGenerateContent` without `alt=sse` | each element |
/// | server-sent events | nearly all streams | the object in the `data` of each event |
/// | AWS event stream | Bedrock's streams | the object in each payload; in `chunk` events the one in its `bytes` |
///
/// The first byte determines the format, or the content type if the byte is ambiguous; a body of another
/// format is skipped. The last usage of a stream replaces earlier ones, such as running counts; only
/// Anthropic's usage is merged count by count, because `message_delta` leaves out counts of
/// `message_start`. Usage is found by its path and names, in every format and from every host, unless
/// the profile has [fields of its own](crate::Rules::usage).
///
/// A scanner holds less than 8 KiB for a body of any size: bytes are read in place and not kept. It
/// allocates nothing for an event after the first few. The result doesn't depend on how the body is
/// split into chunks. The body is not checked to be well-formed: after a syntax error fields may be
/// missed, but none is found at a wrong depth.
///
/// ```
/// use paceline_provider::{OPENAI, Scanner};
/// let mut scanner = Scanner::new(OPENAI, Some("text/event-stream"));
/// scanner.feed(b"data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}], \"usage\": null}\n\n");
/// assert_eq!(scanner.usage(), None);
/// scanner.feed(b"data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"comp");
/// scanner.feed(b"letion_tokens\": 1}}\n\ndata: [DONE]\n\n");
/// assert_eq!(scanner.usage().map(|usage| usage.total()), Some(6));
/// ```
pub struct Scanner {
    profile: Profile,
    format: Format,
    lexer: Lexer,
    frame: Frame,
    /// Set if the output is measured.
    output: Option<Box<OutputSize>>,
}

impl Scanner {
    /// Returns a scanner for one response of a provider with this `content-type`.
    pub fn new(profile: Profile, content_type: Option<&str>) -> Self {
        Self::with_counts(profile, content_type, TokenCounts::default())
    }

    /// Returns a scanner for the body of a response with these headers, which may state usage too.
    pub fn of(profile: Profile, headers: &HeaderMap) -> Self {
        let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        Self::with_counts(profile, kind, profile.counts_in_head(headers))
    }

    /// Returns a scanner for a response whose headers state these counts, which those in the body replace.
    fn with_counts(profile: Profile, content_type: Option<&str>, counts: TokenCounts) -> Self {
        Self {
            profile,
            format: Format::Unknown(Sniff::new(content_type)),
            lexer: Lexer::new(table_of(profile).fields()),
            frame: Frame::with_counts(counts),
            output: None,
        }
    }

    /// Measures the generated text too: see [`Scanned::output_bytes`]. Call it before the first
    /// [`feed`](Self::feed).
    #[must_use]
    pub fn measuring_output(mut self) -> Self {
        self.measure_output();
        self
    }

    /// Measures the generated text too.
    pub(crate) fn measure_output(&mut self) {
        self.output = Some(Box::default());
    }

    /// Returns true if the generated text is measured.
    pub(crate) fn measures_output(&self) -> bool {
        self.output.is_some()
    }

    /// Reads the next chunk of the body, which may be any bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let bytes = self.detect_format(bytes);
        if let Some(output) = &mut self.output {
            output.feed(bytes);
        }
        match &mut self.format {
            Format::Json => self.lexer.feed(bytes, &mut self.frame),
            Format::Sse(sse) => sse.feed(bytes, &mut self.lexer, &mut self.frame),
            Format::EventStream(stream) => {
                stream.feed(bytes, &mut self.lexer, &mut self.frame);
            }
            Format::Unknown(_) | Format::Opaque => {}
        }
    }

    /// Returns the usage stated so far.
    pub fn usage(&self) -> Option<Usage> {
        self.frame.counts().usage()
    }

    /// Returns what the first event of a stream, or the first object of another body, is: data, or an error; `None`
    /// before its end.
    pub(crate) fn first_event(&self) -> Option<Result<(), &ApiError>> {
        let is_opaque = match &self.format {
            Format::EventStream(stream) => stream.is_lost(),
            format => matches!(format, Format::Opaque),
        };
        match is_opaque || self.frame.has_data() {
            true => Some(Ok(())),
            false => self.frame.error().map(Err),
        }
    }

    /// Returns the result for the whole body. A number at which the body was cut off is ignored.
    #[must_use]
    pub fn finish(mut self) -> Scanned {
        self.end()
    }

    /// Returns the result for the whole body, after which the scanner reads no more.
    pub(crate) fn end(&mut self) -> Scanned {
        let is_final = self.frame.counts().is_final();
        let (is_whole, output_bytes) = (self.is_whole(), self.output_bytes());
        let (usage, error) = (self.usage(), self.frame.take_error());
        let has_data = self.frame.has_data();
        let has_usage = usage.is_some_and(|usage| usage != Usage::default());
        let has_generated = has_usage || output_bytes.map_or(has_data, |bytes| bytes > 0);
        Scanned { usage, is_final, is_whole, output_bytes, has_generated, error }
    }

    /// Returns true if the body has ended as its format demands.
    fn is_whole(&self) -> bool {
        match &self.format {
            Format::Json => self.lexer.is_between_roots(),
            Format::Sse(sse) => {
                sse.is_done() || self.frame.has_ended() || self.profile.fields().is_some()
            }
            Format::EventStream(stream) => {
                let awaits_end = self.frame.awaits_end() || self.frame.counts().has_grown();
                stream.is_between_messages() && (self.frame.has_ended() || !awaits_end)
            }
            Format::Unknown(_) | Format::Opaque => true,
        }
    }

    fn output_bytes(&self) -> Option<u64> {
        match &self.format {
            Format::Json | Format::Sse(_) => self.output.as_ref()?.bytes(),
            Format::EventStream(_) | Format::Unknown(_) | Format::Opaque => None,
        }
    }

    /// Returns the bytes held, including the scanner itself.
    pub fn held_bytes(&self) -> usize {
        let output = self.output.as_ref().map_or(0, |_| size_of::<OutputSize>());
        let format = match &self.format {
            Format::EventStream(stream) => size_of_val(&**stream),
            _ => 0,
        };
        size_of::<Self>() + output + format + self.frame.held_bytes()
    }

    /// Determines the format and returns the bytes of the body.
    fn detect_format<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Format::Unknown(sniff) = &mut self.format else { return bytes };
        let (format, rest) = sniff.read(bytes, table_of(self.profile));
        if let Some(format) = format {
            self.format = format;
        }
        rest
    }
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("profile", &self.profile)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

fn table_of(profile: Profile) -> &'static FieldTable {
    profile.fields().unwrap_or(&KNOWN_FIELDS)
}

/// The usage and the error in a response body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scanned {
    /// The usage; `None` if the body states none.
    pub usage: Option<Usage>,
    /// True if the usage is complete even if the body was cut off: its output isn't one that is also
    /// stated before the end, as in `message_start` and Gemini's chunks.
    pub is_final: bool,
    /// True if the body has ended as its format demands: JSON is closed, and a stream of events has its last
    /// one, such as `[DONE]` or `message_stop`. Fields of a profile's own may be in a stream of any other
    /// format, whose last event is unknown: true.
    pub is_whole: bool,
    /// The bytes of the text that a stream has shown, at least: a token has one or more. `None` if no event
    /// arrived, or the output wasn't [measured](Scanner::measuring_output).
    pub output_bytes: Option<u64>,
    /// True if output may have been generated before the error, or the end: the body states a usage, or has data
    /// that isn't known to be without output.
    pub has_generated: bool,
    /// The first error in the body, regardless of the status of the response.
    pub error: Option<ApiError>,
}
