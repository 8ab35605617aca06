//! The start and end of outages of the store, and the log lines about them.

use paceline_limiter::limiter::Clock;

use super::coordinator::Coordinator;
use super::failure::Failure;
use super::outage::Outage;

impl Coordinator {
    /// Starts an outage after a failed call. The connection monitor finds the cause.
    pub(super) fn on_connection_lost(&self, failure: &Failure) {
        let outage = Outage::new(failure, self.store.clock.now(), &self.store.counters);
        if self.store.connection.mark_unavailable(outage) {
            self.store.counters.outages.add(1);
        }
    }

    /// Starts an outage after a failed check of the connection to `server`, or updates its cause. The
    /// first cause of each outage is logged, unless there were several just before.
    pub(super) fn on_check_failed(&self, failure: &Failure, server: &str) {
        self.on_connection_lost(failure);
        let cause = failure.cause().to_string();
        if let Some(unlogged) = self.store.connection.set_cause(&cause, || self.begin_log()) {
            self.log_start(server, &cause, unlogged);
        }
    }

    /// Returns the number of outages since the last one that was logged, if one may be logged now.
    fn begin_log(&self) -> Option<u64> {
        self.outage_log.lock().begin(self.store.ticks.now())
    }

    fn log_start(&self, server: &str, cause: &str, unlogged: u64) {
        let on_failure = self.store.settings.on_failure;
        match unlogged {
            0 => tracing::warn!(server, cause, ?on_failure, "the shared store is unavailable"),
            _ => tracing::warn!(
                server,
                cause,
                ?on_failure,
                unlogged,
                "the shared store is unavailable again"
            ),
        }
    }

    /// Logs the end of an outage, if its start was logged or can be.
    pub(super) fn log_end(&self, outage: &Outage, server: &str) {
        let cause = &*outage.cause;
        if !outage.is_logged {
            // The calls failed, but not the check of the connection.
            let Some(unlogged) = self.begin_log() else {
                return self.outage_log.lock().count_unlogged();
            };
            self.log_start(server, cause, unlogged);
        }
        let [degraded, retries, connects, uncharged] = outage.changes(&self.store.counters);
        let millis = (self.store.clock.now() - outage.since).as_millis();
        tracing::info!(
            server,
            millis,
            degraded,
            retries,
            connects,
            uncharged,
            "the shared store is available again"
        );
    }

    /// Logs a call that the store failed to execute, unless another one was logged just before.
    pub(super) fn log_call_failure(&self, failure: &Failure) {
        if self.failure_log.lock().begin(self.store.ticks.now()).is_some() {
            let (cause, on_failure) = (failure.cause(), self.store.settings.on_failure);
            tracing::warn!(%cause, ?on_failure, "the shared store failed to execute a call");
        }
    }
}
