//! How a job goes on with the output of earlier runs.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};

use super::changes::{Changes, OnChange};
use super::job::{Job, JobError};
use super::output::{Done, EarlierResults, Output};
use crate::terminal::{counted, say};

impl Job {
    /// Opens the output for what is left to do; `input` is the input, not read yet.
    ///
    /// Nothing is changed where lines of the input have changed that it holds results of, unless
    /// these are to be sent again. An input that is a pipe can't be read twice: its lines are
    /// compared as they come.
    pub(super) fn resume_output(&self, input: &File) -> Result<(Output, Done), JobError> {
        let retry_failed = self.resume.retry_failed;
        let earlier = EarlierResults::read(&self.output, self.errors.as_deref(), retry_failed)
            .map_err(JobError::Open)?;
        let changes = self.changes(input, earlier.done())?;
        if !changes.is_empty() && self.resume.changed == OnChange::Refuse {
            return Err(JobError::Changed(self.input.clone(), changes));
        }
        let opened = Output::resume(earlier, changes.ids());
        let (output, done) = opened.map_err(|error| JobError::Open(error.into()))?;
        self.warn_without_hash(&done);
        Ok((output, done))
    }

    fn changes(&self, input: &File, done: &Done) -> Result<Changes, JobError> {
        let failed = |error| JobError::Input(self.input.clone(), error);
        if done.is_empty() {
            return Ok(Changes::default());
        }
        match input.metadata().map_err(failed)?.is_file() {
            true => self.compare(input, done).map_err(failed),
            false if self.resume.changed == OnChange::Resend => Err(failed(io::Error::other(
                "--changed resend reads the input twice, which a pipe can't; save it to a file",
            ))),
            false => Ok(Changes::default()),
        }
    }

    /// Reads the input, and leaves it where it was: to open it again is not enough everywhere, as of
    /// `/dev/stdin`.
    fn compare(&self, mut input: &File, done: &Done) -> io::Result<Changes> {
        let start = input.stream_position()?;
        let changes = Changes::find(self.reader(input), done)?;
        input.seek(SeekFrom::Start(start))?;
        Ok(changes)
    }

    fn warn_without_hash(&self, done: &Done) {
        let count = done.without_hash();
        if count > 0 {
            say(&format_args!(
                "{}: {} without a request hash (written by an earlier version); assuming that \
                 the input lines are unchanged",
                self.output.display(),
                counted(count, "result"),
            ));
        }
    }
}
