//! The input of a batch: batch lines of OpenAI, Anthropic or Gemini, raw request bodies, or a mix.
//!
//! | line | format |
//! |---|---|
//! | `{"custom_id", "method", "url", "body"}` | a Batch line of OpenAI or Azure: a `body` object and a `custom_id`, a `url` or both (`method`, if any, is `POST`) |
//! | `{"custom_id", "params"}` | a line of Anthropic's Message Batches |
//! | `{"key", "request"}` | a line of Gemini's Batch API; the `key` is its `custom_id` |
//! | any other object | a *raw body*, with the `custom_id` `line-N` |
//!
//! A line without a `url` is sent to the path of the reader. `{model}` in that path is replaced by
//! the `model` of the body, without a leading `models/`. Bodies are passed through byte for byte.
//!
//! Blank lines are skipped but counted, so that line numbers match those of an editor. A byte order
//! mark and CRLF are accepted. An invalid line is returned as an [`InvalidLine`], and reading
//! continues.
//!
//! **Duplicate `custom_id`s.** The first line with a `custom_id` is the request; each later one is
//! an [`InvalidLine`] that names the first. Its own id is `line-N` (or `line-N-2` and so on, if
//! that is taken), so that no id is returned twice. The reader keeps a 128-bit hash of each id.
//!
//! ```
//! use paceline_cli::batch::input::{ParsedLine, Reader};
//!
//! # fn main() -> std::io::Result<()> {
//! let text = r#"{"model":"gpt-4o-mini","messages":[]}"#;
//! let mut reader = Reader::new(text.as_bytes(), "/v1/chat/completions");
//! let Some(ParsedLine::Request(line)) = reader.next().transpose()? else { panic!("one request") };
//! assert_eq!((line.custom_id.as_str(), line.number), ("line-1", 1));
//! assert_eq!(line.body, text);
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod invalid_line;
mod shape;

use std::io::{self, BufRead};

use bytes::Bytes;

pub use invalid_line::{InvalidLine, InvalidLineReason};

use super::ids::{Id, Ids};
use super::lines::Lines;
use super::request_hash::RequestHash;

/// A reader of requests, one per line. Its memory is bounded by the longest line and a hash per
/// `custom_id`.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    longest: usize,
    endpoint: String,
    number: u64,
    ids: Ids,
    buf: Vec<u8>,
}

/// A line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedLine {
    /// A request to send.
    Request(InputLine),
    /// An invalid line.
    Invalid(InvalidLine),
}

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputLine {
    /// The line number, from 1.
    pub number: u64,
    /// The `custom_id`, or `line-N`.
    pub custom_id: String,
    /// The absolute path with its query.
    pub url_path: String,
    /// The JSON object to send, exactly as read.
    pub body: Bytes,
    /// The hash of the request.
    pub hash: RequestHash,
}

impl ParsedLine {
    /// Returns the line number and the `custom_id`.
    pub fn place(&self) -> (u64, &str) {
        match self {
            Self::Request(InputLine { number, custom_id, .. })
            | Self::Invalid(InvalidLine { number, custom_id, .. }) => (*number, custom_id),
        }
    }
}

impl InputLine {
    fn new(number: u64, custom_id: String, url_path: String, body: &str) -> Self {
        let hash = RequestHash::of(&url_path, body.as_bytes());
        Self { number, custom_id, url_path, body: Bytes::copy_from_slice(body.as_bytes()), hash }
    }
}

impl<R: BufRead> Reader<R> {
    /// Returns a reader of `read`. Lines without a `url` are sent to the path `endpoint`. A line
    /// may be up to 64 MiB long.
    pub fn new(read: R, endpoint: impl Into<String>) -> Self {
        Self {
            lines: Lines::new(read, LONGEST_LINE),
            longest: LONGEST_LINE,
            endpoint: endpoint.into(),
            number: 0,
            ids: Ids::default(),
            buf: Vec::new(),
        }
    }

    /// Sets the maximum length of a line, in bytes.
    #[must_use]
    pub fn with_longest_line(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self.lines.set_longest(bytes);
        self
    }

    /// Returns the ids read so far, for
    /// [`finish_in_order`](super::output::Output::finish_in_order).
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Returns the ids read so far.
    pub fn into_ids(self) -> Ids {
        self.ids
    }

    fn parse(&mut self, too_long: bool) -> ParsedLine {
        let number = self.number;
        let parsed = if too_long {
            Err(shape::Refused::from(InvalidLineReason::TooLong { longest: self.longest }))
        } else {
            shape::parse(&self.buf)
        };
        let (custom_id, found) = match parsed {
            Ok(request) => (request.custom_id.clone(), Ok(request)),
            Err(refused) => (refused.custom_id, Err(refused.reason)),
        };
        let custom_id = custom_id.unwrap_or_else(|| line_id(number));
        if let Err(first) = self.ids.insert(Id::of(&custom_id), number) {
            return self.duplicate(custom_id, first);
        }
        let found = found.and_then(|shape::Request { form, url_path, body, .. }| {
            let path = || endpoint::path(&self.endpoint, form, body);
            Ok(InputLine::new(number, custom_id.clone(), url_path.map_or_else(path, Ok)?, body))
        });
        match found {
            Ok(line) => ParsedLine::Request(line),
            Err(reason) => ParsedLine::Invalid(InvalidLine { number, custom_id, reason }),
        }
    }

    fn duplicate(&mut self, custom_id: String, first: u64) -> ParsedLine {
        let number = self.number;
        // Another line may have this id as its `custom_id`.
        let names = (2..).map(|count| format!("line-{number}-{count}"));
        let mut names = std::iter::once(line_id(number)).chain(names);
        let own = names.find(|id| self.ids.insert(Id::of(id), number).is_ok());
        let own = own.expect("the sequence of ids is infinite");
        ParsedLine::Invalid(InvalidLine {
            number,
            custom_id: own,
            reason: InvalidLineReason::DuplicateId { custom_id, first },
        })
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<ParsedLine>;

    /// Returns the next line that is not blank. After an I/O error, further lines are unspecified.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let span = match self.lines.next(&mut self.buf) {
                Ok(Some(span)) => span,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            self.number += 1;
            if self.number == 1 && self.buf.starts_with(BYTE_ORDER_MARK) {
                self.buf.drain(..BYTE_ORDER_MARK.len());
            }
            if span.too_long || !self.buf.trim_ascii().is_empty() {
                return Some(Ok(self.parse(span.too_long)));
            }
        }
    }
}

/// Counts the lines that are not blank.
///
/// # Errors
/// An I/O error.
pub fn count(read: impl BufRead) -> io::Result<u64> {
    let mut lines = Lines::new(read, LONGEST_LINE);
    let mut buf = Vec::new();
    let mut counted = 0;
    while let Some(span) = lines.next(&mut buf)? {
        let text = buf.strip_prefix(BYTE_ORDER_MARK).filter(|_| span.start == 0).unwrap_or(&buf);
        counted += u64::from(span.too_long || !text.trim_ascii().is_empty());
    }
    Ok(counted)
}

fn line_id(number: u64) -> String {
    format!("line-{number}")
}

const LONGEST_LINE: usize = 64 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
