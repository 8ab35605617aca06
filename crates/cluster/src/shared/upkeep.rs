//! Background upkeep: renews reservations, closes the connection, and handles failed calls.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use paceline_limiter::limiter::{Clock, Reservation};

use super::coordinator::Coordinator;
use super::failure::Failure;
use super::members;
use super::script::{Id, Operation, Outcome};
use super::settings::micros;

impl Coordinator {
    /// Renews long-lived reservations, lets waiting requests ask again before their tickets expire, and
    /// removes abandoned requests from the store's queue.
    pub(super) async fn upkeep(self: Arc<Self>) {
        let ttl = self.store.settings.ttl;
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            let abandoned = self.reservations.lock().take_abandoned();
            self.return_tickets(abandoned);
            if !self.store.connection.is_available() {
                continue;
            }
            let now = self.store.ticks.now();
            self.reservations.lock().wake_queued(now - TICKET_RENEWAL);
            let due = self.reservations.lock().due_for_renewal(now - ttl / 3);
            join_all(due.iter().map(|(reservation, id)| self.renew(reservation, *id))).await;
        }
    }

    /// Removes requests that no longer wait from the store's queue. Must be called on the worker's
    /// runtime.
    fn return_tickets(self: &Arc<Self>, requests: Vec<(Arc<Reservation>, Id)>) {
        for (reservation, id) in requests {
            let groups = self.groups(&reservation, &reservation.cost);
            tokio::spawn(self.deliver(Operation::Release { unsure: false }, id, groups));
        }
    }

    async fn renew(&self, reservation: &Arc<Reservation>, id: Id) {
        let now = self.store.ticks.now();
        let ttl = micros(self.store.settings.ttl);
        for group in self.groups(reservation, &reservation.cost) {
            for restores in [false, true] {
                let operation = Operation::Renew { ttl, restores };
                match self.call_in_background(operation, id, &group.pieces).await {
                    Ok(response) if response.outcome == Outcome::Unknown => {}
                    Ok(_) => break,
                    Err(failure) => return self.on_background_failure(&failure),
                }
                // The store has lost the reservation, unless the request has ended here.
                if !self.reservations.lock().is_held(reservation, id) {
                    return;
                }
            }
        }
        self.reservations.lock().mark_renewed(reservation, id, now);
    }

    /// Takes back the tickets of this process, waits for up to a second until all ends are reported,
    /// then removes this process from the set of members.
    pub(super) async fn close(self: &Arc<Self>) {
        let report_and_leave = async {
            self.store.connection.check_requested.notify_one();
            loop {
                // A request that a call is pending for may be queued by its response.
                let is_pending = self.reservations.lock().has_pending();
                let queued = self.reservations.lock().take_queued();
                self.return_tickets(queued);
                if !is_pending && !self.has_undelivered() {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            if let Ok((mut link, _)) = self.store.connection.link(false).await {
                let name = self.store.redis_keys.members();
                let left = link.query::<u64>(&members::leave(&name, self.store.process)).await;
                tracing::debug!(left = left.is_ok(), "shared limits closed");
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, report_and_leave).await;
    }

    /// Returns whether there are ends or charges that the store has not acknowledged.
    fn has_undelivered(&self) -> bool {
        self.count_undelivered_keys() > 0 || self.store.counters.unacknowledged.get() > 0
    }

    /// Returns the number of keys with usage that the store has not received.
    pub(super) fn count_undelivered_keys(&self) -> u64 {
        let recorded = self.fallback.lock().count_debts();
        // Recorded amounts move to the outbox, from which they are delivered.
        let undelivered = self.outbox.lock().len();
        u64::try_from(recorded + undelivered).unwrap_or(u64::MAX)
    }

    /// Handles a failed call. Unless the failure is specific to the call, the store counts as
    /// unavailable until the next successful check.
    pub(super) fn on_call_failure(&self, failure: &Failure) {
        if *failure == Failure::TimedOut {
            self.store.counters.timeouts.add(1);
        }
        if failure.is_call_specific() {
            self.log_call_failure(failure);
        } else if !matches!(failure, Failure::Unavailable | Failure::Cancelled) {
            self.on_connection_lost(failure);
        }
    }

    /// Handles a failed background call. A timeout may be caused by load, so it only requests a
    /// check of the connection.
    pub(super) fn on_background_failure(&self, failure: &Failure) {
        match failure {
            Failure::TimedOut => self.store.connection.check_requested.notify_one(),
            _ => self.on_call_failure(failure),
        }
    }
}

const UPKEEP_INTERVAL: Duration = Duration::from_millis(100);
/// The time after which a waiting request asks again: its ticket expires after a second.
const TICKET_RENEWAL: Duration = Duration::from_millis(300);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The maximum time to wait for the store when the limiter closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
