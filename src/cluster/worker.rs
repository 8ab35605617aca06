use std::io;
use std::thread;

use tokio::runtime;
use tokio::sync::oneshot;

/// A thread with a runtime of its own: what it drives goes on whatever the program's own runtime
/// does, and is there for programs that have none.
#[derive(Debug)]
pub(super) struct Worker {
    /// Dropped at the end, which ends the task.
    _alive: oneshot::Sender<()>,
}

impl Worker {
    /// Runs a task until it ends or the worker is dropped.
    ///
    /// # Errors
    /// Of the system, for a thread that can't be started.
    pub(super) fn start<T>(name: &str, task: T) -> io::Result<Self>
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (alive, ended) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = task => {}
                    _ = ended => {}
                }
            });
        };
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { _alive: alive })
    }
}
