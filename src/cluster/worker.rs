use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime;
#[cfg(feature = "redis")]
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with a runtime of its own: what it drives goes on whatever the program's own runtime
/// does, and is there for programs that have none.
#[derive(Debug)]
pub(super) struct Worker {
    #[cfg(feature = "redis")]
    handle: Handle,
    /// Dropped at the end, which ends the task after a while.
    _alive: oneshot::Sender<()>,
}

impl Worker {
    /// Runs a task until it ends. When the worker is dropped it has a while left to end by itself.
    ///
    /// # Errors
    /// Of the system, for a thread that can't be started.
    pub(super) fn start<T>(name: &str, task: T) -> io::Result<Self>
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        #[cfg(feature = "redis")]
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = task => {}
                    () = async { let _ = ended.await; tokio::time::sleep(GRACE).await } => {}
                }
            });
        };
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self {
            #[cfg(feature = "redis")]
            handle,
            _alive: alive,
        })
    }

    /// Hands a task over from any thread. It is dropped when the worker's own task ends.
    #[cfg(feature = "redis")]
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// How long what is queued may take to be sent after the end.
const GRACE: Duration = Duration::from_secs(2);
