use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs4::TryLockError;

use crate::StoreError;
use crate::private_file::private_file;

/// An exclusive lock on a file beside the state file, held until it is dropped or the process ends.
///
/// The lock is on a separate file, since a rename replaces the state file. The lock file is never
/// deleted: otherwise a process could hold a lock on a file that other processes can't see. It
/// contains the PID of the last holder.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks the state file at this path, which must not be a link.
    pub(super) fn acquire(state: &Path) -> Result<Self, StoreError> {
        let path = lock_path(state);
        let failed = |error: io::Error| {
            StoreError::new(state, format!("cannot lock {}: {error}", path.display()))
        };
        let opened = private_file().write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(failed)?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => {
                // The PID is informational; the lock is valid without it.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => Err(StoreError::new(state, in_use(&path))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

fn in_use(lock: &Path) -> String {
    let text = std::fs::read_to_string(lock).unwrap_or_default();
    let owner = match text.trim().parse::<u32>() {
        Ok(number) => format!("process {number}"),
        Err(_) => "another process".to_owned(),
    };
    format!(
        "in use by {owner}, which holds {}; a YAML file serves one process: stop that process, or \
         use a SQLite database",
        lock.display()
    )
}

fn lock_path(state: &Path) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
