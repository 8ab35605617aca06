use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(not(unix))]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// A listener for SIGINT and SIGTERM. Their default actions are disabled, and no signal after the
/// creation of the listener is lost.
#[derive(Debug)]
pub(super) struct StopRequests {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(not(unix))]
    interrupt: CtrlC,
}

impl StopRequests {
    /// Starts listening.
    ///
    /// # Errors
    /// Returns an error if a signal handler can't be installed.
    pub(super) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        });
        #[cfg(not(unix))]
        Ok(Self { interrupt: ctrl_c()? })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        self.interrupt.recv().await;
    }
}

/// Waits for the first SIGINT or SIGTERM.
///
/// # Errors
/// Returns an error if a signal handler can't be installed.
pub(super) async fn stop_requested() -> io::Result<()> {
    StopRequests::listen()?.next().await;
    Ok(())
}
