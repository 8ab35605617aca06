//! The output of a batch: a file that is whole after `kill -9` at any moment, and resumable.
//!
//! - **Every outcome is one line, appended by one write** as soon as it is known. The operating
//!   system has it when [`write`](Output::write) returns: killing the process loses nothing.
//!   [`finish`](Output::finish) also waits for the disk.
//! - **Opening learns what is finished** from the file itself; there is no second journal that
//!   could disagree with it. Finished is every line without an `error`, and every line whose error
//!   is final: the next run leaves both alone.
//! - **A result names its request** by a [hash](super::RequestHash) of its path and body, in the same
//!   line. [`EarlierResults`] are compared with the input before anything is changed.
//! - **Opening makes room** for what this run does again: lines of failures that were
//!   [`retryable`](super::outcome::Failure::retryable), of bad input lines (they cost no request
//!   and may have been fixed), and on demand of all failures and of requests that have changed. They
//!   leave the file by one atomic rename, so no `custom_id` stands in it twice, before or after a
//!   crash.
//! - **A torn last line** (the process was killed within the write) is cut off, and its request is
//!   not finished. One that only lacks its newline gets it, and is. Anything else that is no result
//!   line is an error: nothing is changed.
//! - **One run at a time**: an advisory lock on `OUT.lock` beside the output, which the operating
//!   system lets go when the process ends, however it ends. The empty file stays.
//! - **Order**: lines stand in the order they were written.
//!   [`finish_in_order`](Output::finish_in_order) puts them in the order of the input, also by one
//!   atomic rename. (Holding results back in memory until it is their turn would lose them, and
//!   their cost, to a `kill -9`.)
//!
//! Of each finished request two hashes of 16 bytes are kept in memory.

mod done;
mod earlier;
mod error;
mod file;
mod lock;
mod order;
mod replace;
mod scan;

use std::path::Path;

pub use done::{Done, LineStatus};
pub use earlier::EarlierResults;
pub use error::{FileError, OpenError};

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
    /// Opens the output at `out`, and a file of its own for failures if `errors` names one; makes
    /// either if it isn't there. Says what they hold already.
    ///
    /// Nothing is changed before both files were read to their end and found sound.
    ///
    /// # Errors
    /// [`OpenError`]: another run holds a file, a file is not a regular one, holds anything but
    /// result lines, or cannot be read or written.
    pub fn open(out: &Path, errors: Option<&Path>) -> Result<(Self, Done), OpenError> {
        Ok(Self::resume(EarlierResults::read(out, errors, false)?, &Ids::default())?)
    }

    /// The same with results that were read already; those of `changed` requests make room too.
    ///
    /// # Errors
    /// [`FileError`]: a file cannot be written.
    pub fn resume(earlier: EarlierResults, changed: &Ids) -> Result<(Self, Done), FileError> {
        let (files, locks, done) = earlier.prepare(changed)?;
        let mut files = files.into_iter();
        let results = files.next().expect("the first file is the output");
        Ok((Self { results, errors: files.next(), line: Vec::new(), _locks: locks }, done))
    }

    /// Appends an outcome: a failure to the file of failures, where there is one, all else to the
    /// output. When this returns, the operating system has the whole line.
    ///
    /// # Errors
    /// [`FileError`], as of a full disk. The file ends with the last whole line, or takes no other.
    pub fn write(&mut self, outcome: &Outcome) -> Result<(), FileError> {
        self.line.clear();
        outcome.append_to(&mut self.line);
        let file = match &mut self.errors {
            Some(errors) if outcome.failure().is_some() => errors,
            _ => &mut self.results,
        };
        file.append(&self.line)
    }

    /// Waits until the disk has every line.
    ///
    /// # Errors
    /// [`FileError`] of the disk.
    pub fn finish(self) -> Result<(), FileError> {
        self.files().try_for_each(ResultFile::sync)
    }

    /// The same, and puts the lines in the order of the input: `ids` are those of its
    /// [`Reader`](super::input::Reader::ids). Lines of requests that are not in the input come last.
    ///
    /// Rewrites a file only if it is out of order. Keeps 24 bytes per line in memory meanwhile.
    ///
    /// # Errors
    /// [`FileError`] of the disk; the lines are all there then, in the order they were written.
    pub fn finish_in_order(self, ids: &Ids) -> Result<(), FileError> {
        self.files().try_for_each(ResultFile::sync)?;
        self.files().try_for_each(|file| order::restore(file.path(), ids))
    }

    fn files(&self) -> impl Iterator<Item = &ResultFile> {
        std::iter::once(&self.results).chain(&self.errors)
    }
}
