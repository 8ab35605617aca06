//! Usage and errors, read out of a response body as it passes.

mod chunk;
mod crc;
mod event_stream;
mod field;
mod frame;
mod headers;
mod key;
mod lexer;
mod needles;
mod sink;
mod skip;
mod sniff;
mod sse;
mod unescape;
mod wanted;

use std::fmt;

use http::HeaderMap;

pub(super) use field::{Count, Counts, Field};
pub(super) use frame::ErrorParts;
pub(super) use wanted::Wanted;

use self::frame::Frame;
use self::lexer::Lexer;
use self::sniff::{Format, Sniff};
use super::{ApiError, Profile};
use crate::quota::Usage;

/// Reads usage and in-band errors out of a response body, in pieces of any size.
///
/// | format | where it is met | what is read |
/// |---|---|---|
/// | JSON, one object or several in a row | most responses; NDJSON (Ollama, Cohere v1) | each object |
/// | JSON, an array of objects | Gemini's `streamGenerateContent` without `alt=sse` | each element |
/// | server-sent events | nearly all streams | the object in the `data` of each event |
/// | AWS event stream | Bedrock's streams | the object in each payload; in `chunk` events the one in its `bytes` |
///
/// Which of them it is, the first byte tells, with the content type to settle doubts; anything else
/// is passed over. What an object states takes the place of what earlier ones stated, number by
/// number, so that counts that grow along a stream end as the last ones.
///
/// A scanner holds less than 8 KiB whatever the body: bytes are read where they are and not kept. It
/// allocates nothing for an event once the first few have passed. However the body is cut into
/// pieces, the answer is the same. It does not check that the body is well-formed: behind a mistake
/// it may find less, but it looks for nothing at any depth but the right one.
///
/// ```
/// use tollgate::provider::{OPENAI, Scanner};
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
}

impl Scanner {
    /// A scanner for one response of this provider with this `content-type`.
    pub fn new(profile: Profile, content_type: Option<&str>) -> Self {
        Self {
            profile,
            format: Format::Unknown(Sniff::new(profile, content_type)),
            lexer: Lexer::new(profile.wanted()),
            frame: Frame::default(),
        }
    }

    /// A scanner for the body behind these headers, some of which may state the usage already.
    pub fn of(profile: Profile, headers: &HeaderMap) -> Self {
        let kind = headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let mut scanner = Self::new(profile, kind);
        scanner.frame.begin_with(profile.counts_in_head(headers));
        scanner
    }

    /// Reads the next piece of the body. Any bytes will do.
    pub fn feed(&mut self, bytes: &[u8]) {
        let bytes = self.settle_format(bytes);
        match &mut self.format {
            Format::Json => self.lexer.feed(bytes, &mut self.frame),
            Format::Sse(sse) => sse.feed(bytes, &mut self.lexer, &mut self.frame),
            Format::EventStream(stream) => {
                stream.feed(bytes, &mut self.lexer, &mut self.frame);
            }
            Format::Unknown(_) | Format::Opaque => {}
        }
    }

    /// The usage as far as it is known.
    pub fn usage(&self) -> Option<Usage> {
        self.profile.usage(self.frame.counts())
    }

    /// What the whole body said. A number that the body's end cut off is not counted.
    #[must_use]
    pub fn finish(mut self) -> Scanned {
        let is_final = self.frame.counts().are_final();
        Scanned { usage: self.usage(), is_final, error: self.frame.take_error() }
    }

    /// Bytes held, the scanner itself included.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.frame.held_bytes()
    }

    /// Leaves what follows the bytes that were needed to tell the format.
    fn settle_format<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Format::Unknown(sniff) = &mut self.format else { return bytes };
        let (format, rest) = sniff.read(bytes);
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

/// What a whole response body said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scanned {
    /// The usage, where the body states one.
    pub usage: Option<Usage>,
    /// Whether that is all, though the body may have been cut off: its output is not one that was
    /// stated before the end, as `message_start` and Gemini's chunks do.
    pub is_final: bool,
    /// The first error that the body carried, whatever its status.
    pub error: Option<ApiError>,
}
