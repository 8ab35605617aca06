//! Copies state from one store to another, or from go-ratelimit's files.

use std::fs;
use std::path::Path;

use paceline_limiter::limiter::{Boot, NamedQuota};

use crate::{Sqlite, State, Store, StoreError, Yaml, go_ratelimit};
use go_ratelimit::ImportedState;

mod error;
mod file_kind;
mod missing;
mod summary;

pub use error::MigrateError;
pub use file_kind::FileKind;
use paceline_limiter::Timestamp;
pub use summary::{MigrateSummary, SkippedEntries};

/// Options of [`migrate`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MigrateOptions {
    /// Only reports what would be written.
    pub dry_run: bool,
}

/// Copies the state in the file `source` into the file `destination`. The source stays unchanged.
///
/// `now` is the current time, to which times of usage in the future are clamped. If `boot` is known, times are
/// also corrected for changes of the clock since they were written.
///
/// The source is a YAML or SQLite file of paceline or go-ratelimit, detected by its content. The
/// destination is a YAML or SQLite file of paceline. If it does not exist, it is created in the
/// format that its extension implies: `.yaml`, `.yml`, `.db`, `.sqlite` or `.sqlite3`.
///
/// Quotas and keys of the destination are kept. A quota of the source replaces a quota of the same
/// name, and the summary lists its name. If both files have usage of a bucket at about the same time
/// (within 1/256 of its window), the larger amount is kept, so that a second migration changes
/// nothing. Amounts that the source holds for requests in flight count as used at the time of its last
/// usage, or at the file's modification time if it has no usage. Expired entries are left out.
///
/// # Errors
/// Returns [`MigrateError`]; the destination is then unchanged.
///
/// ```
/// use paceline_store::{FileKind, MigrateOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let (old, new) = (folder.path().join("ratelimits.yaml"), folder.path().join("state.db"));
/// # let now = paceline_limiter::Timestamp::from_unix_secs(1_771_597_922);
/// std::fs::write(&old, "quotas:\n  gpt-4o:\n    max_rpm: 500\n    max_tpm: 30000\n    max_rpd: 0\n")?;
/// let summary = paceline_store::migrate(&old, &new, MigrateOptions::default(), now, None)?;
/// assert_eq!((summary.from, summary.to, summary.quotas), (FileKind::GoYaml, FileKind::Sqlite, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn migrate(
    source: &Path,
    destination: &Path,
    options: MigrateOptions,
    now: Timestamp,
    boot: Option<Boot>,
) -> Result<MigrateSummary, MigrateError> {
    if is_same_file(source, destination) {
        return Err(MigrateError::SameFile { path: source.to_owned() });
    }
    let from = FileKind::detect(source)?;
    let from = from.ok_or_else(|| MigrateError::EmptySource { path: source.to_owned() })?;
    let to = destination_kind(destination)?;
    let mut imported = read(from, source, now, boot)?;
    missing::charge_held(&mut imported.state, written_at(source).unwrap_or(now).min(now));
    let mut summary = MigrateSummary::new(from, to, &imported, options.dry_run);
    if options.dry_run {
        let stored = read_destination(to, destination, now, boot)?;
        summary.compare(&imported.state, &stored);
        return Ok(summary);
    }
    let is_new = FileKind::detect(destination)?.is_none();
    let mut store = store(to, destination);
    store.set_boot(boot);
    let stored = store.open(now)?;
    summary.compare(&imported.state, &stored);
    let changes = missing::missing(&imported.state, &stored);
    // Pass quotas for a new file even if there are none, so that the store writes it.
    let quotas = all_quotas(&imported.state, &stored);
    let quotas = (quotas != stored.quotas || is_new).then_some(quotas);
    store.sync(&changes, quotas.as_deref(), now)?;
    store.close(now)?;
    Ok(summary)
}

/// Returns the time at which a file was last written.
fn written_at(path: &Path) -> Option<Timestamp> {
    Some(fs::metadata(path).ok()?.modified().ok()?.into())
}

/// Returns whether two paths refer to the same file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((file_id(a), file_id(b)), (Some(a), Some(b)) if a == b)
}

#[cfg(unix)]
fn file_id(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<std::path::PathBuf> {
    fs::canonicalize(path).ok()
}

fn destination_kind(path: &Path) -> Result<FileKind, MigrateError> {
    match FileKind::detect(path)?.or_else(|| FileKind::from_extension(path)) {
        Some(kind @ (FileKind::Yaml | FileKind::Sqlite)) => Ok(kind),
        Some(kind) => Err(MigrateError::ReadOnlyFormat { path: path.to_owned(), kind }),
        None => Err(MigrateError::UnknownFileType { path: path.to_owned() }),
    }
}

fn read(
    kind: FileKind,
    path: &Path,
    now: Timestamp,
    boot: Option<Boot>,
) -> Result<ImportedState, StoreError> {
    let own = |state| ImportedState { state, ..ImportedState::default() };
    match kind {
        FileKind::Yaml => Yaml::peek(path, now, boot).map(own),
        FileKind::Sqlite => Sqlite::peek(path, now, boot).map(own),
        FileKind::GoYaml => {
            let text = fs::read_to_string(path);
            let text =
                text.map_err(|error| StoreError::new(path, format!("cannot be read: {error}")))?;
            go_ratelimit::read_file(path, &text, now)
        }
        FileKind::GoSqlite => go_ratelimit::read_database(path, now),
    }
}

/// Reads the state of a destination without changing it.
fn read_destination(
    kind: FileKind,
    path: &Path,
    now: Timestamp,
    boot: Option<Boot>,
) -> Result<State, StoreError> {
    match FileKind::detect(path)? {
        Some(_) => read(kind, path, now, boot).map(|imported| imported.state),
        None => Ok(State::default()),
    }
}

fn store(kind: FileKind, path: &Path) -> Box<dyn Store> {
    match kind {
        FileKind::Yaml | FileKind::GoYaml => Box::new(Yaml::new(path)),
        FileKind::Sqlite | FileKind::GoSqlite => Box::new(Sqlite::new(path)),
    }
}

/// Returns the quotas of both states, sorted by name.
fn all_quotas(source: &State, stored: &State) -> Vec<NamedQuota> {
    let mut quotas = source.quotas.clone();
    let is_replaced = |name: &str| source.quotas.iter().any(|quota| quota.name == name);
    quotas.extend(stored.quotas.iter().filter(|quota| !is_replaced(&quota.name)).cloned());
    quotas.sort_by(|a, b| a.name.cmp(&b.name));
    quotas
}
