use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::finished::{FinishedRequest, FinishedRequests};
use super::replace::replace;
use super::{FileError, OutputError};
use crate::batch::ids::{Id, Ids};
use crate::batch::lines::{LineSpan, Lines};
use crate::batch::outcome::PREFIX;
use crate::batch::request_hash::RequestHash;

/// The content of a result file, and the repairs it needs before lines are appended.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// True if it contains a result.
    has_results: bool,
    /// True if lines must be removed.
    has_removals: bool,
    /// The end of the last complete line.
    complete_len: u64,
    tail: Tail,
}

/// The content after the last newline.
#[derive(Debug, Default, PartialEq, Eq)]
enum Tail {
    #[default]
    Nothing,
    /// A complete line without a newline.
    Unended,
    /// An incomplete line.
    Torn,
}

/// The members of a result line that resuming needs.
#[derive(Deserialize)]
pub(super) struct ResultLine<'a> {
    #[serde(borrow)]
    pub(super) custom_id: Cow<'a, str>,
    #[serde(rename = "response")]
    _response: IgnoredAny,
    error: Option<ResultError>,
    line: Option<u64>,
    request_hash: Option<RequestHash>,
}

/// The finished results to remove, in addition to retryable ones.
#[derive(Debug)]
pub(super) struct Removal<'a> {
    /// Remove permanent failures.
    pub(super) failed: bool,
    /// Remove the results of these requests.
    pub(super) ids: &'a Ids,
}

#[derive(Deserialize)]
struct ResultError {
    #[serde(default)]
    retryable: bool,
}

impl ResultLine<'_> {
    /// Parses a line.
    pub(super) fn parse(line: &[u8]) -> Result<ResultLine<'_>, String> {
        serde_json::from_slice(line).map_err(|error| {
            // The parser gets one line, so its "line 1" would be misleading. Its "expected" texts
            // quote the content, which may be another program's.
            let text = error.to_string();
            let quoting = ["invalid type", "invalid value", "unknown variant"];
            let message = match quoting.iter().any(|start| text.starts_with(start)) {
                true => "not a result line",
                false => text.split(" at line ").next().unwrap_or_default(),
            };
            format!("{message} at column {}", error.column())
        })
    }

    /// Returns true if the next run sends it again: an invalid input line or a retryable failure;
    /// with `retry_failed` any failure.
    fn is_retried(&self, retry_failed: bool) -> bool {
        let retried = |error: &ResultError| error.retryable || retry_failed;
        self.line.is_some() || self.error.as_ref().is_some_and(retried)
    }
}

impl Removal<'_> {
    fn keeps(&self, seen: &ResultLine<'_>) -> bool {
        !seen.is_retried(self.failed) && !self.ids.contains(Id::of(&seen.custom_id))
    }
}

impl Scan {
    /// Reads the file at `path`, if it exists, and adds its finished requests to `done`.
    pub(super) fn of(
        path: &Path,
        done: &mut FinishedRequests,
        retry_failed: bool,
    ) -> Result<Self, OutputError> {
        let mut scan = Self::default();
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(scan),
            opened => opened.map_err(FileError::of("read", path))?,
        };
        let mut lines = Lines::new(BufReader::new(file), LONGEST_LINE);
        let mut buf = Vec::new();
        let mut number = 0;
        while let Some(span) = lines.next(&mut buf).map_err(FileError::of("read", path))? {
            number += 1;
            if let Err(reason) = scan.add(span, &buf, done, retry_failed) {
                let path = path.to_owned();
                return Err(match scan.has_results {
                    true => OutputError::Corrupt { path, line: number, reason },
                    false => OutputError::Foreign { path, reason },
                });
            }
        }
        done.torn |= scan.tail == Tail::Torn;
        Ok(scan)
    }

    /// Removes incomplete, retried and given lines from the file.
    pub(super) fn repair(&self, path: &Path, removal: &Removal<'_>) -> Result<(), FileError> {
        if self.has_removals || !removal.ids.is_empty() {
            return keep_finished(path, removal);
        }
        let mut options = OpenOptions::new();
        let repaired = match self.tail {
            Tail::Nothing => return Ok(()),
            // On Windows, a file opened for appending can't be truncated.
            Tail::Torn => {
                options.write(true).open(path).and_then(|file| file.set_len(self.complete_len))
            }
            Tail::Unended => {
                options.append(true).open(path).and_then(|mut file| file.write_all(b"\n"))
            }
        };
        repaired.map_err(FileError::of("repair", path))
    }

    fn add(
        &mut self,
        span: LineSpan,
        line: &[u8],
        done: &mut FinishedRequests,
        retry_failed: bool,
    ) -> Result<(), String> {
        if span.too_long {
            return Err(format!("longer than {LONGEST_LINE} bytes"));
        }
        if span.ended && line.trim_ascii().is_empty() {
            self.complete_len = span.start + span.len;
            return Ok(());
        }
        let seen = match ResultLine::parse(line) {
            Ok(seen) => seen,
            Err(_) if !span.ended && self.may_be_torn(line) => {
                self.tail = Tail::Torn;
                return Ok(());
            }
            Err(reason) => return Err(reason),
        };
        self.complete_len = span.start + span.len;
        if !span.ended {
            self.tail = Tail::Unended;
        }
        self.has_results = true;
        if seen.is_retried(retry_failed) {
            self.has_removals = true;
            done.again += 1;
        } else {
            let finished =
                FinishedRequest { hash: seen.request_hash, failed: seen.error.is_some() };
            done.insert(Id::of(&seen.custom_id), finished);
        }
        Ok(())
    }

    /// Returns true if the last line may be an interrupted write: in a file with results, any line
    /// without a newline; otherwise only the start of a result line, or zeros left by a power cut.
    fn may_be_torn(&self, line: &[u8]) -> bool {
        self.has_results
            || PREFIX.starts_with(line)
            || line.starts_with(PREFIX)
            || line.iter().all(|&byte| byte == 0)
    }
}

/// Rewrites the file without removed lines.
fn keep_finished(path: &Path, removal: &Removal<'_>) -> Result<(), FileError> {
    replace(path, |writer| {
        let mut lines = Lines::new(BufReader::new(File::open(path)?), LONGEST_LINE);
        let mut buf = Vec::new();
        while lines.next(&mut buf)?.is_some() {
            if ResultLine::parse(&buf).is_ok_and(|seen| removal.keeps(&seen)) {
                buf.push(b'\n');
                writer.write_all(&buf)?;
            }
        }
        Ok(())
    })
}

/// Longer than any response; bounds the memory for files of other programs.
pub(super) const LONGEST_LINE: usize = 1024 * 1024 * 1024;
