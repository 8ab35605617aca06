use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(not(unix))]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// Requests to end: Ctrl-C, or a `kill` that leaves time. None of them ends the process by itself any
/// more, and none that comes after this was made is lost.
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
    /// Listens from now on.
    ///
    /// # Errors
    /// If signals can't be listened to.
    pub(super) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        });
        #[cfg(not(unix))]
        Ok(Self { interrupt: ctrl_c()? })
    }

    /// Ends at the next one.
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

/// Ends at the first request to end.
///
/// # Errors
/// If signals can't be listened to.
pub(super) async fn asked_to_stop() -> io::Result<()> {
    StopRequests::listen()?.next().await;
    Ok(())
}
