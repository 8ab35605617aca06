use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The content of a file of bounded size.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut content)?;
    match content.len() as u64 > LARGEST {
        true => Err(ErrorKind::FileTooLarge.into()),
        false => Ok(content),
    }
}

/// The text that was read.
///
/// # Errors
/// What is wrong, and the line where it is known.
pub(super) fn text(read: io::Result<Vec<u8>>) -> Result<String, (Option<usize>, String)> {
    let bytes = read.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => (None, format!("is larger than {} MiB", LARGEST >> 20)),
        _ => (None, format!("can't be read: {error}")),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        (Some(line), "not UTF-8".to_owned())
    })
}

/// 100,000 quotas take half of that.
pub(in crate::config) const LARGEST: u64 = 8 << 20;
