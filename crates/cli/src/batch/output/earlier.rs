use std::path::{Path, PathBuf};

use super::done::Done;
use super::file::{ResultFile, canonical};
use super::lock::Lock;
use super::scan::{Removal, Scan};
use super::{FileError, OpenError};
use crate::batch::ids::Ids;

/// The results of earlier runs, read and locked, and not changed yet.
#[derive(Debug)]
pub struct EarlierResults {
    files: Vec<(PathBuf, Scan)>,
    locks: Vec<Lock>,
    done: Done,
    retry_failed: bool,
}

impl EarlierResults {
    /// Reads the output at `out`, and the file of failures, if `errors` names one. With
    /// `retry_failed`, lines that failed for good are not done, and make room too.
    ///
    /// # Errors
    /// [`OpenError`]: another run holds a file, a file is not a regular one, holds anything but
    /// result lines, or cannot be read.
    pub fn read(out: &Path, errors: Option<&Path>, retry_failed: bool) -> Result<Self, OpenError> {
        let paths = distinct(out, errors)?;
        let locks = paths.iter().map(|path| Lock::take(path)).collect::<Result<_, _>>()?;
        let (mut done, mut files) = (Done::default(), Vec::new());
        for path in paths {
            let scan = Scan::of(&path, &mut done, retry_failed)?;
            files.push((path, scan));
        }
        Ok(Self { files, locks, done, retry_failed })
    }

    /// What they finished.
    pub fn done(&self) -> &Done {
        &self.done
    }

    /// Makes each file one of whole, finished lines, without those of `changed` requests. The first
    /// is the output.
    pub(super) fn prepare(
        mut self,
        changed: &Ids,
    ) -> Result<(Vec<ResultFile>, Vec<Lock>, Done), FileError> {
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

/// The canonical paths of the files to open, one where both are the same.
fn distinct(out: &Path, errors: Option<&Path>) -> Result<Vec<PathBuf>, OpenError> {
    let mut paths = vec![canonical(out)?];
    if let Some(errors) = errors {
        let errors = canonical(errors)?;
        if errors != paths[0] {
            paths.push(errors);
        }
    }
    Ok(paths)
}
