use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A file and the result of reading it.
#[derive(Debug)]
pub(crate) struct ReadFile {
    pub(crate) path: PathBuf,
    pub(crate) content: io::Result<Vec<u8>>,
}

impl ReadFile {
    /// Reads the file at this path.
    pub(super) fn open(path: &Path) -> Self {
        Self { path: path.to_path_buf(), content: read(path) }
    }
}

/// Reads a file of bounded size.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_FILE_SIZE + 1).read_to_end(&mut content)?;
    match content.len() as u64 > MAX_FILE_SIZE {
        true => Err(ErrorKind::FileTooLarge.into()),
        false => Ok(content),
    }
}

/// Decodes the content of a file.
///
/// # Errors
/// Returns the reason, and the line if it is known.
pub(super) fn decode(read: io::Result<Vec<u8>>) -> Result<String, (Option<usize>, String)> {
    let bytes = read.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => (None, format!("is larger than {} MiB", MAX_FILE_SIZE >> 20)),
        _ => (None, format!("can't read the file: {error}")),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        (Some(line), "invalid UTF-8".to_owned())
    })
}

/// The maximum size of a file in bytes. A file with 100,000 quotas has half that size.
pub(crate) const MAX_FILE_SIZE: u64 = 8 << 20;
