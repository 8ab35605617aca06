use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::private_file::private_file;
use crate::{StoreError, regular_file};

/// Resolves symbolic links; the target may not exist.
pub(super) fn target(path: &Path) -> Result<PathBuf, StoreError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(link) => {
                let directory = target.parent().map(Path::to_owned).unwrap_or_default();
                target = directory.join(link);
            }
            Err(_) => return Ok(target),
        }
    }
    Err(StoreError::new(path, "symbolic link loop"))
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<String, StoreError> {
    read_regular(path).map_err(|error| StoreError::new(path, unreadable(&error)))
}

/// Reads a file; returns an empty text if it is missing.
pub(super) fn read_or_empty(path: &Path) -> Result<String, StoreError> {
    match read_regular(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| StoreError::new(path, unreadable(&error))),
    }
}

fn read_regular(path: &Path) -> io::Result<String> {
    regular_file::metadata(path)?;
    fs::read_to_string(path)
}

/// Creates the directory of a file.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    let made = fs::create_dir_all(directory(path));
    made.map_err(|error| StoreError::new(path, format!("cannot create its directory: {error}")))
}

/// Removes the temporary file of a process that was killed while writing. The caller must hold the
/// lock.
pub(super) fn remove_temporary(path: &Path) {
    // If it can't be removed, it can't be overwritten either, and the write reports that.
    let _ = fs::remove_file(temporary(path));
}

/// Replaces a file atomically: writes and syncs a temporary file, renames it, and syncs the
/// directory. Keeps the permissions of the file; only the owner may read a new one. The caller must hold the lock.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), StoreError> {
    let temporary = temporary(path);
    let replaced = write(path, &temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync(directory(path)));
    replaced.map_err(|error| {
        // Report the first error; the next write overwrites a leftover file.
        let _ = fs::remove_file(&temporary);
        StoreError::new(path, format!("cannot be written: {error}"))
    })
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "not a paceline state file: invalid UTF-8; the file was left unchanged: move it aside to start fresh".into(),
        _ => format!("cannot be read: {error}"),
    }
}

fn write(path: &Path, temporary: &Path, text: &str) -> io::Result<()> {
    let mut file = private_file().write(true).create(true).truncate(true).open(temporary)?;
    match fs::metadata(path) {
        Ok(old) => file.set_permissions(old.permissions())?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The rename is durable once the directory is synced. Only Unix can open a directory.
fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".paceline-tmp");
    name.into()
}

/// The maximum number of links, as on Linux.
const MAX_LINKS: usize = 40;
