use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A file that is looked at again and again, for what it says.
///
/// By its content and nothing else, along its path as it leads at that moment: so edits in place,
/// files renamed over it, links swapped anywhere on the way (`..data` of a Kubernetes ConfigMap),
/// and a file of the same size within the same tick of the file system's clock are seen alike, and a
/// file that was only touched isn't. It looks when it is told to; [`Watch`](super::Watch) does that
/// from time to time.
///
/// What is found is told when a second look finds the same: a file that is being written, or gone for
/// the moment between two renames, is passed over. A writer that rests longer shows what it has
/// written so far, nothing at first: whoever is told must refuse what makes no sense, an empty file
/// too, and is told the rest.
///
/// Why not inotify and its like: they say nothing of other machines' writes (NFS), or through some
/// layers of containers; they follow a file, not its name, so each link and folder on the path would
/// need a watch that moves with it; and they would be a dependency for each system. To open and read
/// a small file takes some 10 µs.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use tollgate::config::Watched;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("config.yaml");
/// std::fs::write(&path, "quotas: {}")?;
/// let (mut file, content) = Watched::open(&path, 1 << 20);
/// assert_eq!(content?, b"quotas: {}");
///
/// std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
/// assert!(file.look().is_none(), "it may still be being written");
/// let content = file.look().expect("twice the same")?;
/// assert_eq!(content, b"quotas: {gpt-4o: {rpm: 5}}");
/// assert!(file.look().is_none(), "that is known by now");
/// # Ok(())
/// # }
/// ```
pub struct Watched {
    path: PathBuf,
    limit: u64,
    told: Seen,
    /// What the last look found, where it isn't what was told.
    found: Option<Seen>,
}

impl Watched {
    /// Reads the file at `path`, and knows it from then on. Of more than `limit` bytes nothing is kept.
    ///
    /// # Errors
    /// The content is an error if there is no file, or it can't be read, is none (a folder, a pipe) or
    /// has more than `limit` bytes ([`ErrorKind::FileTooLarge`]). That is known from then on, too.
    pub fn open(path: impl Into<PathBuf>, limit: u64) -> (Self, io::Result<Vec<u8>>) {
        let path = path.into();
        let content = read(&path, limit);
        let told = Seen::of_read(&content);
        (Self { path, limit, told, found: None }, content)
    }

    /// The file at `path`, which was read before and said this.
    pub fn holding(path: impl Into<PathBuf>, limit: u64, content: Vec<u8>) -> Self {
        Self { path: path.into(), limit, told: Seen::Content(content), found: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says now, or why it can't be read; from then on that was told.
    pub(super) fn now(&mut self) -> io::Result<Vec<u8>> {
        let now = read(&self.path, self.limit);
        (self.told, self.found) = (Seen::of_read(&now), None);
        now
    }

    /// What the file says, or why it can't be read, if this look and the one before found the same,
    /// and it isn't what was told before.
    pub fn look(&mut self) -> Option<io::Result<Vec<u8>>> {
        let now = read(&self.path, self.limit);
        if self.told.is(&now) {
            self.found = None;
            return None;
        }
        match self.found.take() {
            Some(found) if found.is(&now) => {
                self.told = found;
                Some(now)
            }
            _ => {
                self.found = Some(Seen::of(now));
                None
            }
        }
    }
}

impl fmt::Debug for Watched {
    /// Without the content, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("path", &self.path).finish_non_exhaustive()
    }
}

enum Seen {
    Content(Vec<u8>),
    Failed(ErrorKind),
}

impl Seen {
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

    fn is(&self, read: &io::Result<Vec<u8>>) -> bool {
        match (self, read) {
            (Self::Content(seen), Ok(content)) => seen == content,
            (Self::Failed(kind), Err(error)) => *kind == error.kind(),
            _ => false,
        }
    }
}

fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // To open a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        let reason = format!("more than {limit} bytes, which is no configuration");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}
