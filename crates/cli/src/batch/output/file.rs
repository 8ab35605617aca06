use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FileError, OutputError};

/// An append-only file of complete lines.
#[derive(Debug)]
pub(super) struct ResultFile {
    path: PathBuf,
    file: File,
    len: u64,
    closed: bool,
}

impl ResultFile {
    /// Opens the file for appending; creates it if missing.
    pub(super) fn open(path: PathBuf) -> Result<Self, FileError> {
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let file = opened.map_err(FileError::of("write", &path))?;
        let len = file.metadata().map_err(FileError::of("read", &path))?.len();
        Ok(Self { path, file, len, closed: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a complete line.
    ///
    /// A partial write (a full disk) is truncated. If that fails too, the file accepts no more
    /// lines.
    pub(super) fn append(&mut self, line: &[u8]) -> Result<(), FileError> {
        let written = if self.closed {
            Err(io::Error::other("an earlier line was written only partially"))
        } else {
            self.file.write_all(line)
        };
        match written {
            Ok(()) => self.len += line.len() as u64,
            Err(_) => self.closed |= self.file.set_len(self.len).is_err(),
        }
        written.map_err(FileError::of("write", &self.path))
    }

    /// Syncs the file to disk.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        self.file.sync_all().map_err(FileError::of("write", &self.path))
    }
}

/// Returns the path with symbolic links resolved, so that two names of one file have one lock, and
/// a rename replaces the file, not the link.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, OutputError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(OutputError::NotAFile { path: path.to_owned() }),
        Ok(_) => Ok(fs::canonicalize(path).map_err(FileError::of("read", path))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => in_canonical_folder(path),
        Err(error) => Err(FileError::of("read", path)(error).into()),
    }
}

fn in_canonical_folder(path: &Path) -> Result<PathBuf, OutputError> {
    let Some(name) = path.file_name() else {
        return Err(OutputError::NotAFile { path: path.to_owned() });
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = fs::canonicalize(folder).map_err(FileError::of("find its directory", path))?;
    Ok(folder.join(name))
}
