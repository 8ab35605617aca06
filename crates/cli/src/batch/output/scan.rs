use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::done::{Done, Finished};
use super::replace::replace;
use super::{FileError, OpenError};
use crate::batch::ids::{Id, Ids};
use crate::batch::lines::{Lines, Span};
use crate::batch::outcome::PREFIX;
use crate::batch::request_hash::RequestHash;

/// What a file of results holds, and what has to be mended before it can grow.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Whether it holds a result.
    has_results: bool,
    /// Whether lines make room for another attempt.
    again: bool,
    /// The end of the last whole line.
    whole: u64,
    tail: Tail,
}

/// What comes after the last newline.
#[derive(Debug, Default, PartialEq, Eq)]
enum Tail {
    #[default]
    Nothing,
    /// A whole line that lacks its newline.
    Unended,
    /// The start of a line.
    Torn,
}

/// A line of results, as far as resuming needs it.
#[derive(Deserialize)]
pub(super) struct Seen<'a> {
    #[serde(borrow)]
    pub(super) custom_id: Cow<'a, str>,
    #[serde(rename = "response")]
    _response: IgnoredAny,
    error: Option<SeenError>,
    line: Option<u64>,
    request_hash: Option<RequestHash>,
}

/// Which finished results are removed, besides those that every run removes.
#[derive(Debug)]
pub(super) struct Removal<'a> {
    /// Whether failures for good are removed.
    pub(super) failed: bool,
    /// The requests whose results are removed.
    pub(super) ids: &'a Ids,
}

#[derive(Deserialize)]
struct SeenError {
    #[serde(default)]
    retryable: bool,
}

impl Seen<'_> {
    /// Reads a line.
    pub(super) fn parse(line: &[u8]) -> Result<Seen<'_>, String> {
        serde_json::from_slice(line).map_err(|error| {
            // One line was parsed: the parser's "line 1" would mislead. What it expected shows what the
            // file holds, which may be another than an output.
            let text = error.to_string();
            let shows = ["invalid type", "invalid value", "unknown variant"];
            let message = match shows.iter().any(|start| text.starts_with(start)) {
                true => "not a result line",
                false => text.split(" at line ").next().unwrap_or_default(),
            };
            format!("{message} at column {}", error.column())
        })
    }

    /// Whether the next run does it again: a bad line of the input, or a failure that may pass, or
    /// with `retry_failed` any.
    fn makes_room(&self, retry_failed: bool) -> bool {
        let retried = |error: &SeenError| error.retryable || retry_failed;
        self.line.is_some() || self.error.as_ref().is_some_and(retried)
    }
}

impl Removal<'_> {
    fn keeps(&self, seen: &Seen<'_>) -> bool {
        !seen.makes_room(self.failed) && !self.ids.contains(Id::of(&seen.custom_id))
    }
}

impl Scan {
    /// Reads the file at `path`, if there is one, and adds what it finished to `done`.
    pub(super) fn of(path: &Path, done: &mut Done, retry_failed: bool) -> Result<Self, OpenError> {
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
                    true => OpenError::Corrupt { path, line: number, reason },
                    false => OpenError::Foreign { path, reason },
                });
            }
        }
        done.torn |= scan.tail == Tail::Torn;
        Ok(scan)
    }

    /// Makes the file one of whole, finished lines.
    pub(super) fn repair(&self, path: &Path, removal: &Removal<'_>) -> Result<(), FileError> {
        if self.again || !removal.ids.is_empty() {
            return keep_finished(path, removal);
        }
        let mut options = OpenOptions::new();
        let mended = match self.tail {
            Tail::Nothing => return Ok(()),
            // Cutting takes the right to write anywhere, which Windows does not give to appenders.
            Tail::Torn => options.write(true).open(path).and_then(|file| file.set_len(self.whole)),
            Tail::Unended => {
                options.append(true).open(path).and_then(|mut file| file.write_all(b"\n"))
            }
        };
        mended.map_err(FileError::of("repair", path))
    }

    fn add(
        &mut self,
        span: Span,
        line: &[u8],
        done: &mut Done,
        retry_failed: bool,
    ) -> Result<(), String> {
        if span.too_long {
            return Err(format!("longer than {LONGEST_LINE} bytes"));
        }
        if span.ended && line.trim_ascii().is_empty() {
            self.whole = span.start + span.len;
            return Ok(());
        }
        let seen = match Seen::parse(line) {
            Ok(seen) => seen,
            Err(_) if !span.ended && self.may_be_torn(line) => {
                self.tail = Tail::Torn;
                return Ok(());
            }
            Err(reason) => return Err(reason),
        };
        self.whole = span.start + span.len;
        if !span.ended {
            self.tail = Tail::Unended;
        }
        self.has_results = true;
        if seen.makes_room(retry_failed) {
            self.again = true;
            done.again += 1;
        } else {
            let finished = Finished { hash: seen.request_hash, failed: seen.error.is_some() };
            done.insert(Id::of(&seen.custom_id), finished);
        }
        Ok(())
    }

    /// In a file of results, whatever lacks its newline was torn. In a file that holds nothing
    /// else it must be the start of a result, or what a power cut leaves: nothing else is cut off.
    fn may_be_torn(&self, line: &[u8]) -> bool {
        self.has_results
            || PREFIX.starts_with(line)
            || line.starts_with(PREFIX)
            || line.iter().all(|&byte| byte == 0)
    }
}

/// Rewrites the file without the lines that make room.
fn keep_finished(path: &Path, removal: &Removal<'_>) -> Result<(), FileError> {
    replace(path, |writer| {
        let mut lines = Lines::new(BufReader::new(File::open(path)?), LONGEST_LINE);
        let mut buf = Vec::new();
        while lines.next(&mut buf)?.is_some() {
            if Seen::parse(&buf).is_ok_and(|seen| removal.keeps(&seen)) {
                buf.push(b'\n');
                writer.write_all(&buf)?;
            }
        }
        Ok(())
    })
}

/// Longer than any answer: the bound is on what a file that is not ours can take in memory.
pub(super) const LONGEST_LINE: usize = 1024 * 1024 * 1024;
