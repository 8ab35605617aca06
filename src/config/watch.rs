use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::Watched;

/// A thread that looks at a file from time to time, and tells what it says when that has changed.
///
/// It ends when this is dropped, which waits for a look or a call that is under way; except within
/// the call itself: there it ends when the call returns.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use std::sync::mpsc;
/// use tollgate::config::{Watch, Watched};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("config.yaml");
/// # std::fs::write(&path, "quotas: {}")?;
/// let (file, _content) = Watched::open(&path, 1 << 20);
/// let (tell, told) = mpsc::channel();
/// let watch = Watch::start(file, Watch::INTERVAL, move |content| {
///     let _ = tell.send(content);
/// })?;
/// std::fs::write(&path, "quotas: {gpt-4o: {rpm: 5}}")?;
/// assert_eq!(told.recv().expect("it is watched")?, b"quotas: {gpt-4o: {rpm: 5}}");
/// drop(watch);
/// # Ok(())
/// # }
/// ```
#[must_use = "the file is watched until this is dropped"]
pub struct Watch {
    /// Nothing is sent: the thread ends when it is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    file: Arc<Mutex<Watched>>,
}

impl Watch {
    /// Often enough that a change is told within a second: it takes two looks, so half a second and
    /// what they take.
    pub const INTERVAL: Duration = Duration::from_millis(250);

    /// Looks at the file once per `interval` (10 ms at least) on a thread of its own, and calls
    /// `on_change` there with what [`look`](Watched::look) finds. If that panics, nobody looks any more.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        file: Watched,
        interval: Duration,
        mut on_change: impl FnMut(io::Result<Vec<u8>>) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let interval = interval.max(SHORTEST);
        let file = Arc::new(Mutex::new(file));
        let looked_at = Arc::clone(&file);
        let watching = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                // Locked until it was told: nobody who reads the file meanwhile is overtaken.
                let mut file = looked_at.lock();
                if let Some(content) = file.look() {
                    on_change(content);
                }
            }
        };
        let thread = thread::Builder::new().name("tollgate-watch".to_owned()).spawn(watching)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), file })
    }

    /// The file; the thread doesn't look at it meanwhile. Not for the call on that thread.
    pub(super) fn file(&self) -> MutexGuard<'_, Watched> {
        self.file.lock()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        let thread = self.thread.take();
        if let Some(thread) = thread.filter(|own| own.thread().id() != thread::current().id()) {
            // What a panic in the call had to say, it has said.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Short of which a processor does little else.
const SHORTEST: Duration = Duration::from_millis(10);
