//! Stopping of runs.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinError;

/// The reason why a run was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Halt {
    /// Ctrl-C.
    Interrupted,
    /// All other requests would fail too, or a result could not be written.
    Failed(String),
}

/// Stops a run: no further requests are sent, and those in flight are awaited. The first reason
/// counts.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<Option<Halt>>>);

impl Stop {
    /// Returns a handle that is not stopped.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Stops the run.
    pub fn halt(&self, why: Halt) {
        self.0.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                *reason = Some(why);
            }
            first
        });
    }

    /// Stops the run if the task of a line has panicked: its line has no outcome.
    pub(super) fn check(&self, task: Result<(), JoinError>) {
        if let Err(error) = task {
            let message =
                format!("internal error: a request task panicked: {error}; please report this bug");
            self.halt(Halt::Failed(message));
        }
    }

    /// Returns the reason if the run was stopped.
    pub fn reason(&self) -> Option<Halt> {
        self.0.borrow().clone()
    }

    /// Waits until the run is stopped.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn halted(&self) {
        let mut reason = self.0.subscribe();
        // The sender is in `self`, so this can't fail.
        drop(reason.wait_for(Option::is_some).await);
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panicked_task_stops_run() {
        let stop = Stop::new();
        stop.check(tokio::spawn(async {}).await);
        assert_eq!(stop.reason(), None);
        stop.check(tokio::spawn(async { panic!("oh") }).await);
        let reason = stop.reason();
        assert!(
            matches!(&reason, Some(Halt::Failed(why)) if why.contains("panicked")),
            "{reason:?}"
        );
        stop.halt(Halt::Interrupted);
        assert_eq!(stop.reason(), reason, "the first reason counts");
    }
}
