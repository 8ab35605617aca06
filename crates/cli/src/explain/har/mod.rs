//! Recorded HTTP traffic: HAR 1.2 files as saved by browsers and proxies, or files with one HAR entry
//! per line.
//!
//! [`read`] returns one [`Entry`] at a time and never holds more than one in memory. It supports
//! the output of Chrome, Firefox and Safari, mitmproxy, Charles and Proxyman. A member that is
//! missing or has another type counts as empty; cookies, timings and pages are skipped. Bodies are
//! decoded: `base64`, and gzip that the tool left in place.
//!
//! It is independent of LLM APIs; see [`explain`](super::explain).
//!
//! ```
//! use std::ops::ControlFlow;
//! use paceline::Timestamp;
//! use paceline_cli::explain::har;
//!
//! let file = r#"{"log": {"entries": [{"startedDateTime": "2025-06-01T12:00:00.250Z", "time": 750,
//!     "request": {"method": "GET", "url": "https://h/v1/models", "headers": []},
//!     "response": {"status": 200, "headers": [{"name": "X-Id", "value": "7"}],
//!                  "content": {"text": "e30=", "encoding": "base64"}}}]}}"#;
//! let mut entries = Vec::new();
//! let read = har::read(file.as_bytes(), |entry| {
//!     entries.push(entry);
//!     ControlFlow::Continue(())
//! });
//! assert!(read.is_ok());
//! let [entry] = &entries[..] else { panic!("one entry") };
//! assert_eq!((entry.response.status, &entry.response.body[..]), (200, &b"{}"[..]));
//! assert_eq!(entry.response.headers["x-id"], "7");
//! assert_eq!(entry.ended_at, Some(Timestamp::from_unix_secs(1_748_779_201)));
//! ```

mod body;
mod document;
mod end_time;
mod entry;
mod error;
mod headers;
mod lenient;

use std::io::Read;
use std::ops::ControlFlow;

pub use entry::{Entry, Request, Response};
pub use error::{HarError, HarErrorKind};

use self::document::HarReader;

/// Reads the entries of a HAR file, or of a file with one entry per line, and calls `each` with each
/// of them in order until it returns [`ControlFlow::Break`].
///
/// The source should be buffered, since it is read byte by byte.
///
/// # Errors
/// [`HarError`] if the source can't be read to its end, after the readable entries.
pub fn read(
    source: impl Read,
    mut each: impl FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), HarError> {
    HarReader::new(&mut each).read(source)
}
