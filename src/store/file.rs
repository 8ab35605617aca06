use std::path::Path;

use super::error::StoreError;
use super::migrate::FileKind;
use super::sqlite::Sqlite;
use super::state::State;
use super::yaml::Yaml;
use crate::limiter::Boot;
use crate::timestamp::Timestamp;

/// Reads the state in a file of [`Yaml`] or [`Sqlite`], detected by its content.
///
/// Times are adjusted to `now`, and for a changed clock if
/// `boot` is known. Changes no file, and works while another process has the file open.
///
/// # Errors
/// Returns [`StoreError`] if the file is missing or is not a tollgate file.
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
/// Returns [`StoreError`] as [`peek`], if the file can't be written, and for YAML while another
/// process has it open.
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

/// Returns the kind of a tollgate file; for an empty or missing file, the kind that its name
/// implies.
fn kind(path: &Path) -> Result<FileKind, StoreError> {
    match FileKind::of(path)?.or_else(|| FileKind::named(path)) {
        Some(kind @ (FileKind::GoYaml | FileKind::GoSqlite)) => Err(StoreError::new(
            path,
            format!("is a {kind} file; import it into another file with `tollgate migrate`"),
        )),
        Some(kind) => Ok(kind),
        None => Ok(FileKind::Sqlite),
    }
}
