use std::fmt;
use std::path::PathBuf;

use super::file_kind::FileKind;
use crate::StoreError;

/// An error of [`migrate`](super::migrate). The destination is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum MigrateError {
    /// Source and destination are the same file.
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The source is missing or empty.
    EmptySource {
        /// The source.
        path: PathBuf,
    },
    /// The destination is a file of another program, which can only be read.
    ReadOnlyFormat {
        /// The destination.
        path: PathBuf,
        /// The format of the destination.
        kind: FileKind,
    },
    /// The destination does not exist, and its name does not imply a format.
    UnknownFileType {
        /// The destination.
        path: PathBuf,
    },
    /// The source or the destination can't be read or written.
    Store(StoreError),
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameFile { path } => {
                write!(
                    f,
                    "{}: source and destination are the same file; choose another destination",
                    path.display()
                )
            }
            Self::EmptySource { path } => {
                write!(f, "{}: nothing to import; the file is missing or empty", path.display())
            }
            Self::ReadOnlyFormat { path, kind } => {
                write!(
                    f,
                    "{}: {kind} files are read-only; choose another destination",
                    path.display()
                )
            }
            Self::UnknownFileType { path } => write!(
                f,
                "{}: unknown file type; use .yaml or .yml for YAML, or .db, .sqlite or .sqlite3 for SQLite",
                path.display()
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MigrateError {}

impl From<StoreError> for MigrateError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
