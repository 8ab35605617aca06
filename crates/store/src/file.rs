use std::path::Path;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::Boot;

use crate::error::StoreError;
use crate::migrate::FileKind;
use crate::sqlite::Sqlite;
use crate::state::State;
use crate::yaml::Yaml;

/// Reads the state in a file of [`Yaml`] or [`Sqlite`], detected by its content.
///
/// Times of usage in the future are clamped to `now`. If `boot` is known, times are also corrected for changes
/// of the clock since they were written. No file is changed, and another process may have the file
/// open.
///
/// # Errors
/// Returns [`StoreError`] if the file is missing or is not a paceline file.
pub fn peek(path: &Path, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
    match kind(path)? {
        FileKind::Sqlite => Sqlite::peek(path, now, boot),
        _ => Yaml::peek(path, now, boot),
    }
}

/// Resets the usage of a key, or of all keys, in a file of [`Yaml`] or [`Sqlite`], detected by its
/// content.
///
/// # Errors
/// Returns [`StoreError`] in the cases of [`peek`], and if the file can't be written. A YAML file
/// can't be written while another process has it open.
pub fn reset(
    path: &Path,
    key: Option<&str>,
    now: Timestamp,
    boot: Option<Boot>,
) -> Result<(), StoreError> {
    match kind(path)? {
        FileKind::Sqlite => Sqlite::reset(path, key, now, boot),
        _ => Yaml::reset(path, key, now, boot),
    }
}

/// Returns the kind of a paceline file; for an empty or missing file, the kind that its name
/// implies.
fn kind(path: &Path) -> Result<FileKind, StoreError> {
    match FileKind::detect(path)?.or_else(|| FileKind::from_extension(path)) {
        Some(kind @ (FileKind::GoYaml | FileKind::GoSqlite)) => Err(StoreError::new(
            path,
            format!("is a {kind} file; import it into another file with `paceline migrate`"),
        )),
        Some(kind) => Ok(kind),
        None => Ok(FileKind::Sqlite),
    }
}
