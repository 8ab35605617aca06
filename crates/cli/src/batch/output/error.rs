use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error while opening an output. No file was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutputError {
    /// Another run writes to the output.
    Locked {
        /// The output.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The output is a directory, a pipe or a device.
    NotAFile {
        /// The output.
        path: PathBuf,
    },
    /// The file is not an output of batch.
    Foreign {
        /// The output.
        path: PathBuf,
        /// The error in its first line.
        reason: String,
    },
    /// A line after the first is not a result.
    Corrupt {
        /// The output.
        path: PathBuf,
        /// The line number, from 1.
        line: u64,
        /// The error in the line.
        reason: String,
    },
    /// An I/O error.
    File(FileError),
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, lock } => write!(
                f,
                "{}: another run is writing to it (it holds {}); wait for it to end, or write to \
                 another file",
                path.display(),
                lock.display(),
            ),
            Self::NotAFile { path } => {
                write!(f, "{}: not a regular file; write to a regular file", path.display())
            }
            Self::Foreign { path, reason } => write!(
                f,
                "{}: not an output of batch ({reason}); left unchanged: write to another file",
                path.display(),
            ),
            Self::Corrupt { path, line, reason } => write!(
                f,
                "{}: line {line} is not a batch result ({reason}); left unchanged: fix or delete that \
                 line, or write to another file",
                path.display(),
            ),
            Self::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => error.source(),
            _ => None,
        }
    }
}

impl From<FileError> for OutputError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// An I/O error of a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileError {
    /// The operation: `read`, `write`, `lock`.
    pub doing: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The I/O error.
    pub source: io::Error,
}

impl FileError {
    /// Returns a function that adds the operation and the file to an [`io::Error`].
    pub(super) fn of(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { doing, path: path.to_owned(), source }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot {}: {}", self.path.display(), self.doing, self.source)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
