use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why an output can't be opened. Nothing was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another run writes to it.
    Locked {
        /// The output.
        path: PathBuf,
        /// The file that the other run holds.
        lock: PathBuf,
    },
    /// It is a folder, a pipe or a device.
    NotAFile {
        /// The output.
        path: PathBuf,
    },
    /// It holds something else than results.
    Foreign {
        /// The output.
        path: PathBuf,
        /// Why its first line is no result.
        reason: String,
    },
    /// A line after the first is no result.
    Corrupt {
        /// The output.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// Why it is no result.
        reason: String,
    },
    /// It cannot be read or written.
    File(FileError),
}

impl fmt::Display for OpenError {
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

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => error.source(),
            _ => None,
        }
    }
}

impl From<FileError> for OpenError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// Something the operating system could not do with a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileError {
    /// What was tried: `read`, `write`, `lock`.
    pub doing: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the operating system says.
    pub source: io::Error,
}

impl FileError {
    /// Turns an [`io::Error`] into one that says what was done to which file.
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
