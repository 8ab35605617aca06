use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{Sqlite, State, Store, StoreError, Yaml, go_ratelimit};
use crate::limiter::{Boot, NamedQuota};
use go_ratelimit::Taken;

mod error;
mod kind;
mod missing;
mod summary;

pub use error::MigrateError;
pub use kind::Kind;
pub use summary::{Skipped, Summary};

/// How state is taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Writes nothing, and says what would be written.
    pub dry_run: bool,
}

/// Takes over what the file at `source` keeps into the one at `destination`, by a clock that says
/// `now` (nanoseconds since the epoch) and knows of `boot`. The source stays as it is.
///
/// The source is a file of ours or of go-ratelimit's, YAML or SQLite, whatever its name. The
/// destination is a YAML or SQLite file of ours, which is made if it isn't there: then its name says
/// which, by `.yaml`, `.yml`, `.db`, `.sqlite` or `.sqlite3`.
///
/// Nothing that the destination keeps is lost: its own quotas and keys stay. A quota of the same name
/// gives way to the source's, and is named in the summary. Of what was used of a bucket at about the
/// same time (within 1/256 of its window), the larger amount stays: so the second time changes
/// nothing. What the source holds for requests in flight counts as taken when it was last used (or its
/// file was last written, if nothing else is in it); what no longer counts is left out.
///
/// # Errors
/// [`MigrateError`]: the destination is as it was.
///
/// ```
/// use tollgate::store::{self, Kind, Options};
///
/// # let folder = tempfile::tempdir()?;
/// # let (old, new) = (folder.path().join("ratelimits.yaml"), folder.path().join("state.db"));
/// # let now = 1_771_597_922_000_000_000;
/// std::fs::write(&old, "quotas:\n  gpt-4o:\n    max_rpm: 500\n    max_tpm: 30000\n    max_rpd: 0\n")?;
/// let summary = store::migrate(&old, &new, Options::default(), now, None)?;
/// assert_eq!((summary.from, summary.to, summary.quotas), (Kind::GoYaml, Kind::Sqlite, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn migrate(
    source: &Path,
    destination: &Path,
    options: Options,
    now: u64,
    boot: Option<Boot>,
) -> Result<Summary, MigrateError> {
    if is_same(source, destination) {
        return Err(MigrateError::SameFile { path: source.to_owned() });
    }
    let from = Kind::of(source)?;
    let from = from.ok_or_else(|| MigrateError::Nothing { path: source.to_owned() })?;
    let to = kind_of_destination(destination)?;
    let mut taken = read(from, source, now, boot)?;
    missing::end_requests(&mut taken.state, written_at(source).unwrap_or(now).min(now));
    let mut summary = Summary::new(from, to, &taken, options.dry_run);
    if options.dry_run {
        let kept = kept(to, destination, now, boot)?;
        summary.compare(&taken.state, &kept);
        return Ok(summary);
    }
    let is_new = Kind::of(destination)?.is_none();
    let mut store = store(to, destination);
    store.set_boot(boot);
    let kept = store.open(now)?;
    summary.compare(&taken.state, &kept);
    let changes = missing::missing(&taken.state, &kept);
    // Told of quotas, a store writes a file where there is none, though there be nothing in it.
    let quotas = all_quotas(&taken.state, &kept);
    let quotas = (quotas != kept.quotas || is_new).then_some(quotas);
    store.sync(&changes, quotas.as_deref(), now)?;
    store.close(now)?;
    Ok(summary)
}

/// When a file was last written, in nanoseconds since the epoch.
fn written_at(path: &Path) -> Option<u64> {
    let time = fs::metadata(path).ok()?.modified().ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Whether two paths lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((identity(a), identity(b)), (Some(a), Some(b)) if a == b)
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<std::path::PathBuf> {
    fs::canonicalize(path).ok()
}

fn kind_of_destination(path: &Path) -> Result<Kind, MigrateError> {
    match Kind::of(path)?.or_else(|| Kind::named(path)) {
        Some(kind @ (Kind::Yaml | Kind::Sqlite)) => Ok(kind),
        Some(kind) => Err(MigrateError::NotOurs { path: path.to_owned(), kind }),
        None => Err(MigrateError::UnknownName { path: path.to_owned() }),
    }
}

fn read(kind: Kind, path: &Path, now: u64, boot: Option<Boot>) -> Result<Taken, StoreError> {
    let ours = |state| Taken { state, ..Taken::default() };
    match kind {
        Kind::Yaml => Yaml::peek(path, now, boot).map(ours),
        Kind::Sqlite => Sqlite::peek(path, now, boot).map(ours),
        Kind::GoYaml => {
            let text = fs::read_to_string(path);
            let text =
                text.map_err(|error| StoreError::new(path, format!("cannot be read: {error}")))?;
            go_ratelimit::read_file(path, &text, now)
        }
        Kind::GoSqlite => go_ratelimit::read_database(path, now),
    }
}

/// What a destination keeps, without a change to it.
fn kept(kind: Kind, path: &Path, now: u64, boot: Option<Boot>) -> Result<State, StoreError> {
    match Kind::of(path)? {
        Some(_) => read(kind, path, now, boot).map(|taken| taken.state),
        None => Ok(State::default()),
    }
}

fn store(kind: Kind, path: &Path) -> Box<dyn Store> {
    match kind {
        Kind::Yaml | Kind::GoYaml => Box::new(Yaml::new(path)),
        Kind::Sqlite | Kind::GoSqlite => Box::new(Sqlite::new(path)),
    }
}

/// The quotas of both, sorted by name.
fn all_quotas(source: &State, kept: &State) -> Vec<NamedQuota> {
    let mut quotas = source.quotas.clone();
    let named = |name: &str| source.quotas.iter().any(|quota| quota.name == name);
    quotas.extend(kept.quotas.iter().filter(|quota| !named(&quota.name)).cloned());
    quotas.sort_by(|a, b| a.name.cmp(&b.name));
    quotas
}
