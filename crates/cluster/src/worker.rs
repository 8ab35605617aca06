use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime;
#[cfg(feature = "redis")]
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with its own Tokio runtime, independent of the program's runtime, if any.
#[derive(Debug)]
pub(super) struct Worker {
    #[cfg(feature = "redis")]
    handle: Handle,
    /// Dropping the sender ends the task after a grace period.
    _alive: oneshot::Sender<()>,
}

impl Worker {
    /// Runs a task on a new thread. When the worker is dropped, the task gets a grace period to
    /// finish.
    ///
    /// # Errors
    /// Returns the error of the operating system if the thread cannot be started.
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

    /// Returns the runtime handle, to spawn tasks from any thread. Spawned tasks are dropped when
    /// the worker's own task ends.
    #[cfg(feature = "redis")]
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// The time that queued work has to finish after the worker is dropped.
const GRACE: Duration = Duration::from_secs(2);
