use std::path::Path;

use super::error::StoreError;
use super::migrate::FileKind;
use super::sqlite::Sqlite;
use super::state::State;
use super::yaml::Yaml;
use crate::limiter::Boot;
use crate::timestamp::Timestamp;

/// What a file of [`Yaml`] or [`Sqlite`] keeps, whichever it is by its content, its times set right for
/// `now`, and for a clock that was set where `boot` is known. Changes
/// nothing, and may be called while others have the file open.
///
/// # Errors
/// [`StoreError`] if there is no such file, and for one that isn't ours.
pub fn peek(path: &Path, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
    match kind(path)? {
        FileKind::Sqlite => Sqlite::peek(path, now, boot),
        _ => Yaml::peek(path, now, boot),
    }
}

/// Forgets at `now` what was taken of a key, or of all keys, in a file of [`Yaml`] or [`Sqlite`],
/// whichever it is by its content.
///
/// # Errors
/// [`StoreError`] as [`peek`], if it can't be written, and for YAML while another process has it open.
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

/// One of ours; a file that is empty or isn't there is of the kind that its name says.
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
