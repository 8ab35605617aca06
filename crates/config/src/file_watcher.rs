use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::WatchedFile;

/// A thread that polls a file, and reports its content after a change.
///
/// Dropping the watcher stops the thread, and waits for a running callback to return. If the callback
/// itself drops the watcher, the thread ends when the callback returns.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use std::sync::mpsc;
/// use paceline_config::{FileWatcher, WatchedFile};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("config.yaml");
/// # std::fs::write(&path, "quotas: {}")?;
/// let (file, _content) = WatchedFile::open(&path, 1 << 20);
/// let (sender, changes) = mpsc::channel();
/// let watch = FileWatcher::start(file, FileWatcher::INTERVAL, move |content| {
///     let _ = sender.send(content);
/// })?;
/// std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
/// assert_eq!(changes.recv().expect("a change")?, b"quotas: {gpt-4o: {rpm: 5}}");
/// drop(watch);
/// # Ok(())
/// # }
/// ```
#[must_use = "the file is watched until this is dropped"]
pub struct FileWatcher {
    /// Dropping the sender stops the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    file: Arc<Mutex<WatchedFile>>,
}

impl FileWatcher {
    /// The interval with which a change is reported within a second: after two polls, which take half a
    /// second, and the time to read the file.
    pub const INTERVAL: Duration = Duration::from_millis(250);

    /// Starts a thread that polls the file once per `interval`, at least 10 ms, and calls `on_change` with
    /// each change that [`poll`](WatchedFile::poll) returns. The thread ends if `on_change` panics.
    ///
    /// # Errors
    /// Returns an error if the system can't start a thread.
    pub fn start(
        file: WatchedFile,
        interval: Duration,
        mut on_change: impl FnMut(io::Result<Vec<u8>>) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let interval = interval.max(MIN_INTERVAL);
        let file = Arc::new(Mutex::new(file));
        let polled = Arc::clone(&file);
        let watching = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                // Keep the lock until the change is reported, so that a later read is reported later.
                let mut file = polled.lock();
                if let Some(content) = file.poll() {
                    on_change(content);
                }
            }
        };
        let thread = thread::Builder::new().name("paceline-watch".to_owned()).spawn(watching)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), file })
    }

    /// Locks the file, which pauses polling. Must not be called on the thread of the watcher.
    pub(super) fn file(&self) -> MutexGuard<'_, WatchedFile> {
        self.file.lock()
    }
}

impl Drop for FileWatcher {
    fn drop(&mut self) {
        self.stop = None;
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|own| own.thread().id() != thread::current().id()) {
            // The panic hook has already reported a panic of the callback.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for FileWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWatcher").finish_non_exhaustive()
    }
}

/// The minimum interval, which avoids constant polling.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
