use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// Where a path leads to through links, whether or not there is a file yet.
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

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, StoreError> {
    fs::read_to_string(path).map_err(|error| StoreError::new(path, unreadable(&error)))
}

/// The text of a file; none where there is no file.
pub(super) fn read_or_empty(path: &Path) -> Result<String, StoreError> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| StoreError::new(path, unreadable(&error))),
    }
}

/// Makes the folder of a file.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    let made = fs::create_dir_all(directory(path));
    made.map_err(|error| StoreError::new(path, format!("cannot create its directory: {error}")))
}

/// Takes away what a process that was killed while it wrote has left. The caller holds the file's
/// lock.
pub(super) fn remove_temporary(path: &Path) {
    // One that can't be taken away can't be overwritten either, and that is told then.
    let _ = fs::remove_file(temporary(path));
}

/// Replaces a file, or leaves it as it is: temporary file, sync, rename, sync of the folder. Its
/// permissions stay. The caller holds its lock.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), StoreError> {
    let temporary = temporary(path);
    let replaced = write(path, &temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync(directory(path)));
    replaced.map_err(|error| {
        // The first error is the one to tell; a file left over is overwritten next time.
        let _ = fs::remove_file(&temporary);
        StoreError::new(path, format!("cannot be written: {error}"))
    })
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "not a tollgate state file: invalid UTF-8; the file was left unchanged: move it aside to start fresh".into(),
        _ => format!("cannot be read: {error}"),
    }
}

fn write(path: &Path, temporary: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(temporary)?;
    match fs::metadata(path) {
        Ok(old) => file.set_permissions(old.permissions())?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The rename is on disk once the folder is. Only Unix can open a folder.
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
    name.push(".tollgate-tmp");
    name.into()
}

/// As many as Linux follows.
const MAX_LINKS: usize = 40;
