use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Returns the metadata of a file or directory. Anything else is an error: opening a pipe would wait for a writer.
pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
    let found = fs::metadata(path)?;
    match found.is_file() || found.is_dir() {
        true => Ok(found),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}
