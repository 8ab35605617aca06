use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of a file of bounded size.
///
/// # Errors
/// What is wrong, and the line where it is known.
pub(super) fn read(path: &Path) -> Result<String, (Option<usize>, String)> {
    let unread = |error: &io::Error| (None, format!("can't be read: {error}"));
    let file = File::open(path).map_err(|error| unread(&error))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unread(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err((None, format!("is larger than {} MiB", LARGEST >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        (Some(line), "not UTF-8".to_owned())
    })?;
    // As a file is that somebody is about to write: to take it for "no limits" would be wrong.
    match text.trim_start_matches('\u{feff}').trim().is_empty() {
        true => Err((None, "is empty; write {} for the defaults".to_owned())),
        false => Ok(text),
    }
}

/// 100,000 quotas take half of that.
const LARGEST: u64 = 8 << 20;
