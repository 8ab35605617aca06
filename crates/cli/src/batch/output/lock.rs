use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use fs4::TryLockError;

use super::{FileError, OutputError};

/// An exclusive lock on a file beside the output, held until it is dropped or the process ends.
///
/// A rename would replace a lock on the output itself. The lock file is kept: after its deletion,
/// two runs could hold locks on different files of the same name.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks the output at this canonical path.
    pub(super) fn take(output: &Path) -> Result<Self, OutputError> {
        let lock = beside(output, ".lock");
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&lock);
        let file = opened.map_err(FileError::of("lock", &lock))?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(OutputError::Locked { path: output.to_owned(), lock })
            }
            Err(TryLockError::Error(error)) => Err(FileError::of("lock", &lock)(error).into()),
        }
    }
}

/// Appends a suffix to the file name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
