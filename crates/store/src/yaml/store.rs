use std::fmt;
use std::path::{Path, PathBuf};

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Boot, KeyChanges, NamedQuota};

use super::document::Document;
use super::file;
use super::lock::Lock;
use crate::clock_origin::ClockOrigin;
use crate::{State, Store, StoreError};

/// State in a YAML file, for one process.
///
/// The state is kept in memory, and every change replaces the whole file: a temporary file beside
/// it is written, synced and renamed. A process that is killed at any moment leaves either the old
/// or the new file, complete. Only the owner may read a new file; the permissions of an existing one
/// are kept. If the path is a symbolic link, its target is replaced, and the link stays.
///
/// A missing or empty file is an empty state. A file that can't be parsed is an error, and is never
/// overwritten.
///
/// While the store is open, it holds a lock on a file beside the state (`state.yaml.lock`), which
/// is never deleted.
///
/// # Format
///
/// ```yaml
/// version: 1
/// written_at: 2026-02-20T14:32:01.123456789Z
/// boot:                          # the machine's boot, by the clock of the writer
///   id: 3c1ed9f66c5f4a499b1c0f2c1a6f7d11
///   at: 2026-02-19T07:00:12.500000000Z
/// quotas:                        # by name: a key, a glob, or `regex:` and a regular expression
///   gpt-4o:
///     origin: set                # configured, set or learned
///     shared: false              # one set of buckets for all keys that the name matches
///     weight: 2                  # of the keys as flows; default: 1
///     utilization: 0.9           # the part of the account's windows to which requests are held
///     limits:
///     - dimension: tokens        # requests, tokens, input_tokens, output_tokens, concurrency, custom:NAME
///       limit: 30000
///       window: 1m               # with a zone: day, week or month; total: never resets
///       algorithm: token_bucket  # sliding_window, fixed_window, clock_window; default: the provider's
///       burst: 500               # of a token bucket; default: the limit
///     - dimension: requests
///       limit: 1000
///       window: day
///       zone: America/Los_Angeles
///       debt: true               # admits a request above the limit when nothing is used
///       whole: 2000              # admits one up to this amount when nothing is used
/// keys:                          # the usage of each key
///   gpt-4o:
///     cooling:                   # the cool-down after a refusal of the provider
///       noted_at: 2026-02-20T14:31:59.000000000Z
///       until: 2026-02-20T14:32:29.000000000Z
///     learned:                   # limits that answers of the provider have shown, for a day
///     - dimension: requests
///       amount: 20.0             # per second; of concurrency: requests in flight
///       configured: 40.0         # the amount per second of the quota, if it limits the dimension
///       measured_at: 2026-02-20T14:31:59.000000000Z
///       events: 3                # the number of refusals that measured it
///     buckets:
///     - dimension: tokens
///       window: 1m
///       refill: 30000            # of a token bucket: the refill per window
///       held: 800                # by requests in flight
///       taken:                   # times and amounts of usage
///         2026-02-20T14:31:40.987654321Z: 1500
///         2026-02-20T14:32:01.123456789Z: 200
/// ...
/// ```
///
/// Times are in UTC, with nanoseconds. Entries within 1/256 of a window are merged, at the latest
/// of their times. Entries that have left their window, or that have refilled in a token bucket, are
/// left out. The last line is YAML's end-of-document marker: a file without it is
/// truncated, and is refused.
///
/// Every write contains the whole state, which suits up to some hundreds of keys; for more, or for
/// several processes, use the SQLite store.
///
/// ```
/// use paceline_limiter::limiter::{BucketChanges, KeyChanges};
/// use paceline_limiter::quota::{Dimension, Window};
/// use paceline_store::{Store, Yaml};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("state.yaml");
/// # let now = paceline_limiter::Timestamp::from_nanos(1_771_597_921_123_456_789);
/// let mut store = Yaml::new(&path);
/// store.open(now)?;
/// let mut changes = KeyChanges::new("gpt-4o");
/// changes.buckets.push(BucketChanges::new(Dimension::Tokens, Window::MINUTE, vec![(now, 1500)], 0));
/// store.sync(&[changes], None, now)?;
/// assert!(std::fs::read_to_string(&path)?.contains("2026-02-20T14:32:01.123456789Z: 1500"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Yaml {
    path: PathBuf,
    boot: Option<Boot>,
    open: Option<OpenFile>,
}

/// An open state file.
struct OpenFile {
    /// The target of the path, links resolved.
    target: PathBuf,
    origin: ClockOrigin,
    document: Document,
    /// True if the file exists.
    exists: bool,
    _lock: Lock,
}

impl Yaml {
    /// Creates a store for this file, which is first read when the store is opened.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), boot: None, open: None }
    }

    /// Reads the state in a file, which another process may have open. Times of usage in the future are
    /// clamped to `now`. If `boot` is known, times are also corrected for changes of the clock since they were
    /// written.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the file is missing or can't be parsed.
    pub fn peek(path: &Path, now: Timestamp, boot: Option<Boot>) -> Result<State, StoreError> {
        let mut document = Document::read(path, &file::read(path)?)?;
        document.retime(&ClockOrigin::new(boot, now), now);
        Ok(document.state())
    }

    /// Resets the usage of a key, or of all keys in the file.
    ///
    /// # Errors
    /// Returns [`StoreError`] in the cases of [`peek`](Self::peek), if the file can't be written, and
    /// while another process has it open, since that process would overwrite the change.
    pub fn reset(
        path: &Path,
        key: Option<&str>,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        file::read(path)?;
        let mut open = OpenFile::new(path, boot, now)?;
        let mut document = open.document.clone();
        document.retime(&open.origin, now);
        document.reset(key);
        open.write_if_changed(document, now)
    }

    /// Replaces the state in the file; `now` is the time of the write.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the file can't be written, is not a state file, or is open in another
    /// process.
    pub fn replace(
        path: &Path,
        state: &State,
        now: Timestamp,
        boot: Option<Boot>,
    ) -> Result<(), StoreError> {
        let mut open = OpenFile::new(path, boot, now)?;
        let mut document = Document::from_state(state, now);
        document.set_written(&open.origin, now);
        open.write(document)
    }

    fn open_file(&mut self) -> Result<&mut OpenFile, StoreError> {
        let closed = || StoreError::new(&self.path, "the store is not open");
        self.open.as_mut().ok_or_else(closed)
    }
}

impl Store for Yaml {
    fn set_boot(&mut self, boot: Option<Boot>) {
        self.boot = boot;
    }

    fn open(&mut self, now: Timestamp) -> Result<State, StoreError> {
        // Release an earlier lock first.
        self.open = None;
        let mut open = OpenFile::new(&self.path, self.boot, now)?;
        // This process has the lock, so the process that wrote held amounts has ended.
        open.document.retime(&open.origin, now);
        open.document.charge_held(now);
        Ok(self.open.insert(open).document.state())
    }

    /// Always returns an empty list, since a YAML file is not shared.
    fn sync(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: Timestamp,
    ) -> Result<Vec<KeyChanges>, StoreError> {
        let origin = ClockOrigin::new(self.boot, now);
        let open = self.open_file()?;
        let has_moved = origin.ahead_of(&open.origin) != 0;
        if !changes.is_empty() || quotas.is_some() || has_moved {
            let mut document = open.document.clone();
            if has_moved {
                document.convert_times(&open.origin, &origin, now);
            }
            document.merge(changes, quotas, now);
            let before = std::mem::replace(&mut open.origin, origin);
            if let Err(error) = open.write_if_changed(document, now) {
                open.origin = before;
                return Err(error);
            }
        }
        Ok(Vec::new())
    }

    fn close(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut document = open.document.clone();
        document.charge_held(now);
        if document != open.document {
            open.write_if_changed(document, now)?;
        }
        self.open = None;
        Ok(())
    }
}

/// Omits the content, since keys may be secrets.
impl fmt::Debug for Yaml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Yaml").field("path", &self.path).finish_non_exhaustive()
    }
}

impl OpenFile {
    fn new(path: &Path, boot: Option<Boot>, now: Timestamp) -> Result<Self, StoreError> {
        let target = file::target(path)?;
        file::create_directory(&target)?;
        let lock = Lock::acquire(&target)?;
        file::remove_temporary(&target);
        let document = Document::read(path, &file::read_or_empty(&target)?)?;
        let (exists, origin) = (target.exists(), ClockOrigin::new(boot, now));
        Ok(Self { target, origin, document, exists, _lock: lock })
    }

    fn write_if_changed(
        &mut self,
        mut document: Document,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if self.exists && document == self.document {
            return Ok(());
        }
        document.set_written(&self.origin, now);
        self.write(document)
    }

    /// Writes a document. If that fails, `document` still equals the content of the file.
    fn write(&mut self, document: Document) -> Result<(), StoreError> {
        let text =
            document.to_text().map_err(|error| StoreError::new(&self.target, error.to_string()))?;
        file::replace(&self.target, &text)?;
        (self.document, self.exists) = (document, true);
        Ok(())
    }
}
