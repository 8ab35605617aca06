use std::fmt;
use std::path::{Path, PathBuf};

/// The error for a store that can't be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreError {
    /// The file.
    pub path: PathBuf,
    /// The cause, and what to do about it.
    pub reason: String,
    /// True if the file was deleted or replaced while it was in use.
    pub lost: bool,
}

impl StoreError {
    pub(super) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_path_buf(), reason: reason.into(), lost: false }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for StoreError {}
