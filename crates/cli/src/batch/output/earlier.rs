use std::path::{Path, PathBuf};

use super::file::{ResultFile, canonical};
use super::finished::FinishedRequests;
use super::lock::Lock;
use super::scan::{Removal, Scan};
use super::{FileError, OutputError};
use crate::batch::ids::Ids;

/// The results of earlier runs, read and locked but not changed.
#[derive(Debug)]
pub struct EarlierResults {
    files: Vec<(PathBuf, Scan)>,
    locks: Vec<Lock>,
    done: FinishedRequests,
    retry_failed: bool,
}

impl EarlierResults {
    /// Reads the output at `out`, and the file of failures at `errors`. With `retry_failed`,
    /// permanently failed lines count as not finished and are removed.
    ///
    /// # Errors
    /// [`OutputError`] if another run has locked a file, a file is not regular, contains anything but
    /// result lines, or can't be read.
    pub fn read(
        out: &Path,
        errors: Option<&Path>,
        retry_failed: bool,
    ) -> Result<Self, OutputError> {
        let paths = distinct(out, errors)?;
        let locks = paths.iter().map(|path| Lock::take(path)).collect::<Result<_, _>>()?;
        let (mut done, mut files) = (FinishedRequests::default(), Vec::new());
        for path in paths {
            let scan = Scan::of(&path, &mut done, retry_failed)?;
            files.push((path, scan));
        }
        Ok(Self { files, locks, done, retry_failed })
    }

    /// Returns the finished requests.
    pub fn done(&self) -> &FinishedRequests {
        &self.done
    }

    /// Removes incomplete and retried lines and those of `changed` requests from each file. The
    /// first is the output.
    pub(super) fn prepare(
        mut self,
        changed: &Ids,
    ) -> Result<(Vec<ResultFile>, Vec<Lock>, FinishedRequests), FileError> {
        let removal = Removal { failed: self.retry_failed, ids: changed };
        let mut results = Vec::new();
        for (path, scan) in self.files {
            scan.repair(&path, &removal)?;
            results.push(ResultFile::open(path)?);
        }
        self.done.forget(changed);
        Ok((results, self.locks, self.done))
    }
}

/// Returns the canonical paths of the files, without duplicates.
fn distinct(out: &Path, errors: Option<&Path>) -> Result<Vec<PathBuf>, OutputError> {
    let mut paths = vec![canonical(out)?];
    if let Some(errors) = errors {
        let errors = canonical(errors)?;
        if errors != paths[0] {
            paths.push(errors);
        }
    }
    Ok(paths)
}
