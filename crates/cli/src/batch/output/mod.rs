//! The output of a batch: a resumable file that is valid after `kill -9` at any time.
//!
//! - **Each outcome is one line, appended by one write** as soon as it is known. When
//!   [`write`](Output::write) returns, the operating system has the line, and killing the process loses
//!   nothing. [`finish`](Output::finish) also syncs it to disk.
//! - **Finished requests are read from the file itself**; there is no separate journal that could
//!   disagree. Every line without an `error` is finished, and every line with a permanent error.
//! - **A result contains a [hash](super::RequestHash)** of its request's path and body.
//!   [`EarlierResults`] are compared with the input before anything is changed.
//! - **Opening removes the lines that this run replaces**:
//!   [retryable](super::outcome::Failure::retryable) failures, invalid input lines (they may have been
//!   fixed), and on request all failures and changed requests. One atomic rename removes them, so that no
//!   `custom_id` occurs twice, before or after a crash.
//! - **An incomplete last line** (the process was killed during the write) is removed and its request sent
//!   again. A last line without a newline is completed. Any other invalid line is an error, and nothing
//!   is changed.
//! - **One run at a time**: an advisory lock on `OUT.lock` beside the output, released when the process
//!   ends. The empty file is kept.
//! - **Order**: lines are in order of completion. [`finish_in_order`](Output::finish_in_order) sorts
//!   them into input order with one atomic rename. Results held back in memory would be lost by
//!   `kill -9`.
//!
//! Two hashes of 16 bytes are kept in memory per finished request.

mod earlier;
mod error;
mod file;
mod finished;
mod lock;
mod order;
mod replace;
mod scan;

use std::path::Path;

pub use earlier::EarlierResults;
pub use error::{FileError, OutputError};
pub use finished::{FinishedRequests, LineStatus};

use self::file::ResultFile;
use self::lock::Lock;
use super::ids::Ids;
use super::outcome::Outcome;

/// The output of a run, locked until it is dropped.
#[derive(Debug)]
pub struct Output {
    results: ResultFile,
    errors: Option<ResultFile>,
    line: Vec<u8>,
    _locks: Vec<Lock>,
}

impl Output {
    /// Opens the output at `out`, and a separate file for failures at `errors`; creates missing
    /// files. Returns the finished requests.
    ///
    /// No file is changed before both were read and are valid.
    ///
    /// # Errors
    /// [`OutputError`] if another run has locked a file, a file is not regular, contains anything but
    /// result lines, or can't be read or written.
    pub fn open(
        out: &Path,
        errors: Option<&Path>,
    ) -> Result<(Self, FinishedRequests), OutputError> {
        Ok(Self::resume(EarlierResults::read(out, errors, false)?, &Ids::default())?)
    }

    /// Opens results that were read already, and removes those of `changed` requests.
    ///
    /// # Errors
    /// [`FileError`] if a file can't be written.
    pub fn resume(
        earlier: EarlierResults,
        changed: &Ids,
    ) -> Result<(Self, FinishedRequests), FileError> {
        let (files, locks, done) = earlier.prepare(changed)?;
        let mut files = files.into_iter();
        let results = files.next().expect("the first file is the output");
        Ok((Self { results, errors: files.next(), line: Vec::new(), _locks: locks }, done))
    }

    /// Appends an outcome: a failure to the file of failures, if there is one, anything else to the
    /// output.
    ///
    /// # Errors
    /// [`FileError`], such as a full disk. The file ends with the last complete line.
    pub fn write(&mut self, outcome: &Outcome) -> Result<(), FileError> {
        self.line.clear();
        outcome.append_to(&mut self.line);
        let file = match &mut self.errors {
            Some(errors) if outcome.failure().is_some() => errors,
            _ => &mut self.results,
        };
        file.append(&self.line)
    }

    /// Syncs all lines to disk.
    ///
    /// # Errors
    /// [`FileError`] of the disk.
    pub fn finish(self) -> Result<(), FileError> {
        self.files().try_for_each(ResultFile::sync)
    }

    /// Syncs all lines and sorts them by the ids of the input, from
    /// [`Reader::ids`](super::input::Reader::ids). Lines of requests that are not in the input come
    /// last.
    ///
    /// Rewrites a file only if it is unsorted. Needs 24 bytes of memory per line.
    ///
    /// # Errors
    /// [`FileError`]; all lines are kept, in order of completion.
    pub fn finish_in_order(self, ids: &Ids) -> Result<(), FileError> {
        self.files().try_for_each(ResultFile::sync)?;
        self.files().try_for_each(|file| order::restore(file.path(), ids))
    }

    fn files(&self) -> impl Iterator<Item = &ResultFile> {
        std::iter::once(&self.results).chain(&self.errors)
    }
}
