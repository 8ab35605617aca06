//! Resuming of earlier outputs.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};

use super::changes::{Changes, OnChange};
use super::job::{Job, JobError};
use super::output::{EarlierResults, FinishedRequests, Output};
use crate::terminal::{counted, notify};

impl Job {
    /// Opens the output for the remaining lines; `input` is not read yet.
    ///
    /// Changes nothing if finished lines of the input have changed, unless they are to be sent
    /// again. A pipe can't be read twice, so its lines are compared during the run.
    pub(super) fn resume_output(
        &self,
        input: &File,
    ) -> Result<(Output, FinishedRequests), JobError> {
        let retry_failed = self.resume.retry_failed;
        let earlier = EarlierResults::read(&self.output, self.errors.as_deref(), retry_failed)
            .map_err(JobError::Output)?;
        let changes = self.changes(input, earlier.done())?;
        if !changes.is_empty() && self.resume.changed == OnChange::Refuse {
            return Err(JobError::Changed(self.input.clone(), changes));
        }
        let opened = Output::resume(earlier, changes.ids());
        let (output, done) = opened.map_err(|error| JobError::Output(error.into()))?;
        self.warn_without_hash(&done);
        Ok((output, done))
    }

    fn changes(&self, input: &File, done: &FinishedRequests) -> Result<Changes, JobError> {
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

    /// Reads the input and seeks back. Opening it again doesn't work for `/dev/stdin` everywhere.
    fn compare(&self, mut input: &File, done: &FinishedRequests) -> io::Result<Changes> {
        let start = input.stream_position()?;
        let changes = Changes::find(self.reader(input), done)?;
        input.seek(SeekFrom::Start(start))?;
        Ok(changes)
    }

    fn warn_without_hash(&self, done: &FinishedRequests) {
        let count = done.without_hash();
        if count > 0 {
            notify(&format_args!(
                "{}: {} without a request hash (written by an earlier version); assuming that \
                 the input lines are unchanged",
                self.output.display(),
                counted(count, "result"),
            ));
        }
    }
}
