use std::fs::{self, Metadata};
use std::path::Path;

use super::database_error::{DatabaseError, DatabaseProblem};

/// The identity of the database's file, which a file of the same name doesn't share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at `path`.
    pub(super) fn of(path: &Path) -> Result<Self, DatabaseError> {
        let metadata = fs::metadata(path).map_err(DatabaseProblem::Io)?;
        Ok(identity(&metadata))
    }

    /// Checks that the file is still at `path`: SQLite would go on to write to a deleted file.
    pub(super) fn check(self, path: &Path) -> Result<(), DatabaseError> {
        match fs::metadata(path) {
            Ok(metadata) if identity(&metadata) == self => Ok(()),
            _ => Err(DatabaseProblem::Lost.into()),
        }
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> FileIdentity {
    use std::os::unix::fs::MetadataExt;
    FileIdentity { device: metadata.dev(), number: metadata.ino() }
}

/// Other systems don't delete or replace an open file.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> FileIdentity {
    FileIdentity { device: 0, number: 0 }
}
