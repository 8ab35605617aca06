//! The input of a batch: batch lines of OpenAI, Anthropic or Gemini, raw request bodies, or a mix.
//!
//! | line | what it is |
//! |---|---|
//! | `{"custom_id", "method", "url", "body"}` | a Batch line of OpenAI or Azure: a `body` object and a `custom_id`, a `url` or both (`method`, if any, is `POST`) |
//! | `{"custom_id", "params"}` | one of Anthropic's Message Batches |
//! | `{"key", "request"}` | one of Gemini's Batch API; the `key` is its `custom_id` |
//! | any other object | a *raw body*, under the `custom_id` `line-N` |
//!
//! A line without a `url` goes to the path that the reader was made with. `{model}` in that path stands
//! for the `model` of the body, without `models/` in front. Bodies pass byte for byte.
//!
//! Blank lines are skipped, but counted: numbers are those an editor shows. A byte order mark and
//! CRLF are tolerated. A line that is no request comes out as a [`BadLine`], and reading goes on.
//!
//! **Repeated `custom_id`s.** The first line with a `custom_id` is the request; each later one is a
//! [`BadLine`] that names the first, and that stands under `line-N` (or `line-N-2` and so on, where
//! that is taken), so that no id comes out twice.
//! The reader keeps a 128-bit hash of each id, and nothing else of the lines it has read.
//!
//! ```
//! use tollgate_cli::batch::input::{Entry, Reader};
//!
//! # fn main() -> std::io::Result<()> {
//! let text = r#"{"model":"gpt-4o-mini","messages":[]}"#;
//! let mut reader = Reader::new(text.as_bytes(), "/v1/chat/completions");
//! let Some(Entry::Request(line)) = reader.next().transpose()? else { panic!("one request") };
//! assert_eq!((line.custom_id.as_str(), line.number), ("line-1", 1));
//! assert_eq!(line.body, text);
//! # Ok(())
//! # }
//! ```

mod bad_line;
mod endpoint;
mod shape;

use std::io::{self, BufRead};

use bytes::Bytes;

pub use bad_line::{BadLine, Fault};

use super::ids::{Id, Ids};
use super::lines::Lines;
use super::request_hash::RequestHash;

/// Reads requests from the lines of a file, in memory bounded by its longest line and a hash per
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

/// What a line of the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A request to send.
    Request(Line),
    /// A line that is no request.
    Bad(BadLine),
}

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The number of its line, from 1.
    pub number: u64,
    /// The caller's name for it, or `line-N`.
    pub custom_id: String,
    /// The absolute path to call, with its query.
    pub url_path: String,
    /// The JSON object to send, byte for byte as it was read.
    pub body: Bytes,
    /// The identity of its request.
    pub hash: RequestHash,
}

impl Entry {
    /// The number of its line, and its `custom_id`.
    pub fn place(&self) -> (u64, &str) {
        match self {
            Self::Request(Line { number, custom_id, .. })
            | Self::Bad(BadLine { number, custom_id, .. }) => (*number, custom_id),
        }
    }
}

impl Line {
    fn new(number: u64, custom_id: String, url_path: String, body: &str) -> Self {
        let hash = RequestHash::of(&url_path, body.as_bytes());
        Self { number, custom_id, url_path, body: Bytes::copy_from_slice(body.as_bytes()), hash }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads `read`; lines without a `url` go to the path `endpoint`. A line is at most 64 MiB
    /// long.
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

    /// The same reader, with another bound on the length of a line, in bytes.
    #[must_use]
    pub fn with_longest_line(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self.lines.set_longest(bytes);
        self
    }

    /// The ids read so far, each with its line: what
    /// [`finish_in_order`](super::output::Output::finish_in_order) puts the output in order by.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The ids read so far, without the reader.
    pub fn into_ids(self) -> Ids {
        self.ids
    }

    fn parse(&mut self, too_long: bool) -> Entry {
        let number = self.number;
        let parsed = if too_long {
            Err(shape::Refused::from(Fault::TooLong { longest: self.longest }))
        } else {
            shape::parse(&self.buf)
        };
        let (custom_id, found) = match parsed {
            Ok(request) => (request.custom_id.clone(), Ok(request)),
            Err(refused) => (refused.custom_id, Err(refused.fault)),
        };
        let custom_id = custom_id.unwrap_or_else(|| named_by_line(number));
        if let Err(first) = self.ids.insert(Id::of(&custom_id), number) {
            return self.repeated(custom_id, first);
        }
        let found = found.and_then(|shape::Request { form, url_path, body, .. }| {
            let path = || endpoint::path(&self.endpoint, form, body);
            Ok(Line::new(number, custom_id.clone(), url_path.map_or_else(path, Ok)?, body))
        });
        match found {
            Ok(line) => Entry::Request(line),
            Err(fault) => Entry::Bad(BadLine { number, custom_id, fault }),
        }
    }

    fn repeated(&mut self, custom_id: String, first: u64) -> Entry {
        let number = self.number;
        // Taken already where someone named another line `line-N` by hand.
        let names = (2..).map(|again| format!("line-{number}-{again}"));
        let mut names = std::iter::once(named_by_line(number)).chain(names);
        let own = names.find(|id| self.ids.insert(Id::of(id), number).is_ok());
        let own = own.expect("there are names without end");
        Entry::Bad(BadLine { number, custom_id: own, fault: Fault::Repeats { custom_id, first } })
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Entry>;

    /// The next line that is not blank. An error is one of reading; nothing comes after it that
    /// can be relied on.
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

/// How many lines of a file are not blank: what a [`Reader`] will yield, for a progress bar.
///
/// # Errors
/// Those of reading.
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

fn named_by_line(number: u64) -> String {
    format!("line-{number}")
}

const LONGEST_LINE: usize = 64 * 1024 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
