//! Recorded HTTP traffic: HAR 1.2, as browsers and proxies save it, or one entry of it per line.
//!
//! [`read`] hands out one [`Entry`] at a time and never holds more than one, however long the file.
//! It takes what the tools write: Chrome, Firefox and Safari, mitmproxy, Charles, Proxyman. A member
//! of an entry that is missing or of another type is as if it were empty, so that one odd entry
//! doesn't cost the rest; cookies, timings and pages are passed over. Bodies come out as they were
//! before they were sent: `base64` and a gzip that the tool left in place are undone.
//!
//! It does not know what an LLM is; [`explain`](super::explain) does.
//!
//! ```
//! use std::ops::ControlFlow;
//! use tollgate::Timestamp;
//! use tollgate_cli::explain::har;
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
mod entry;
mod error;
mod headers;
mod lenient;
mod when;

use std::io::Read;
use std::ops::ControlFlow;

pub use entry::{Entry, Request, Response};
pub use error::{HarError, Problem};

use self::document::Reading;

/// Reads the entries of a HAR file, or of lines that hold one entry each, and hands them to `each`
/// in their order until it breaks.
///
/// The source is best buffered: it is read byte by byte.
///
/// # Errors
/// [`HarError`] where the source can't be read to its end; the entries before that place were
/// handed out.
pub fn read(
    source: impl Read,
    mut each: impl FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), HarError> {
    Reading::new(&mut each).read(source)
}
