use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A file that is polled for changes of its content.
///
/// A change is a difference in content, and the path is resolved at each poll. This detects edits in place,
/// files renamed over the path, and links replaced anywhere on it (`..data` of a Kubernetes ConfigMap), and
/// ignores a file that was only touched. [`FileWatcher`](crate::FileWatcher) polls
/// periodically.
///
/// Content is reported when two polls in a row read the same, so that a file that is being written, or is
/// missing between two renames, is skipped. If a writer pauses for longer, a partial or empty file is
/// reported. The receiver must refuse it, and receives the complete file later.
///
/// Notifications such as inotify are not used: they don't report writes of other machines (NFS) or across
/// some container file systems. They watch a file rather than its path, so each link and directory on the
/// path would need a separate watch, and each platform would need a dependency. Opening and reading a small
/// file takes about 10 µs.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use paceline_config::WatchedFile;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("config.yaml");
/// std::fs::write(&path, "quotas: {}")?;
/// let (mut file, content) = WatchedFile::open(&path, 1 << 20);
/// assert_eq!(content?, b"quotas: {}");
///
/// std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
/// assert!(file.poll().is_none(), "the file may still be written");
/// let content = file.poll().expect("a change")?;
/// assert_eq!(content, b"quotas: {gpt-4o: {rpm: 5}}");
/// assert!(file.poll().is_none(), "no further change");
/// # Ok(())
/// # }
/// ```
pub struct WatchedFile {
    path: PathBuf,
    limit: u64,
    reported: Snapshot,
    /// The result of the last poll, if it differs from the reported one.
    pending: Option<Snapshot>,
}

impl WatchedFile {
    /// Reads the file at `path`. Later polls report changes from this content.
    ///
    /// # Errors
    /// The content is an error if the file doesn't exist, can't be read, is not a regular file, or is larger
    /// than `limit` bytes ([`ErrorKind::FileTooLarge`]). Later polls report changes from this error.
    pub fn open(path: impl Into<PathBuf>, limit: u64) -> (Self, io::Result<Vec<u8>>) {
        let path = path.into();
        let content = read(&path, limit);
        let reported = Snapshot::of_read(&content);
        (Self { path, limit, reported, pending: None }, content)
    }

    /// Creates a watched file from content that was read earlier.
    pub fn with_content(path: impl Into<PathBuf>, limit: u64, content: Vec<u8>) -> Self {
        Self { path: path.into(), limit, reported: Snapshot::Content(content), pending: None }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file now. Later polls report changes from the result.
    pub(super) fn read_now(&mut self) -> io::Result<Vec<u8>> {
        let now = read(&self.path, self.limit);
        (self.reported, self.pending) = (Snapshot::of_read(&now), None);
        now
    }

    /// Reads the file, and returns its content, or the error, if it has changed and the previous poll read
    /// the same.
    pub fn poll(&mut self) -> Option<io::Result<Vec<u8>>> {
        let now = read(&self.path, self.limit);
        if self.reported.matches(&now) {
            self.pending = None;
            return None;
        }
        match self.pending.take() {
            Some(pending) if pending.matches(&now) => {
                self.reported = pending;
                Some(now)
            }
            _ => {
                self.pending = Some(Snapshot::of(now));
                None
            }
        }
    }
}

impl fmt::Debug for WatchedFile {
    /// Formats the path without the content, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The result of reading a file.
enum Snapshot {
    Content(Vec<u8>),
    Failed(ErrorKind),
}

impl Snapshot {
    fn of(read: io::Result<Vec<u8>>) -> Self {
        read.map_or_else(|error| Self::failed(&error), Self::Content)
    }

    fn of_read(read: &io::Result<Vec<u8>>) -> Self {
        match read {
            Ok(content) => Self::Content(content.clone()),
            Err(error) => Self::failed(error),
        }
    }

    fn failed(error: &io::Error) -> Self {
        Self::Failed(error.kind())
    }

    fn matches(&self, read: &io::Result<Vec<u8>>) -> bool {
        match (self, read) {
            (Self::Content(before), Ok(content)) => before == content,
            (Self::Failed(kind), Err(error)) => *kind == error.kind(),
            _ => false,
        }
    }
}

/// Reads a regular file of at most `limit` bytes.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        let reason = format!("larger than {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}
