//! Why a run ends before its input does.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinError;

/// A run that nobody has stopped, or the reason why it was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Halt {
    /// Ctrl-C.
    Interrupted,
    /// Every other request would fail too, or a result could not be written.
    Failed(String),
}

/// Stops a run: nothing more is sent, what is in flight is waited for. The first reason counts.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<Option<Halt>>>);

impl Stop {
    /// A run that goes on.
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

    /// Stops the run if a line's task has died: that line has no outcome, which must not pass for a
    /// run that went well.
    pub(super) fn check(&self, task: Result<(), JoinError>) {
        if let Err(error) = task {
            let message =
                format!("internal error: a request task panicked: {error}; please report this bug");
            self.halt(Halt::Failed(message));
        }
    }

    /// Why the run was stopped, if it was.
    pub fn reason(&self) -> Option<Halt> {
        self.0.borrow().clone()
    }

    /// Ends when the run is stopped.
    ///
    /// # Cancel safety
    /// Can be dropped and called again at any time.
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
    async fn a_line_whose_task_has_died_stops_the_run_and_one_that_has_ended_does_not() {
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
