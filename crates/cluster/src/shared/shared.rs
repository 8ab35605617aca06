use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Level, Rule};
use paceline_limiter::limiter::{
    Backend, BackendStatus, Clock, Closing, Ending, Measurement, Rechecking, Refreshing,
    Reservation, ReserveError, Reserving, Resetting,
};
use paceline_limiter::quota::Cost;
use tokio::sync::oneshot;

use super::connection_monitor::ConnectionMonitor;
use super::coordinator::Coordinator;
use super::error::SharedError;
use super::lease::Leases;
use super::piece::Group;
use super::redis_keys::RedisKeys;
use super::reservations::ReservationState;
use super::script::{Id, Operation};
use super::settings::Settings;
use super::status::SharedStatus;
use super::store::Store;
use super::url::Server;
use crate::worker::Worker;
use crate::{OnFailure, SharingMode, dial};

/// Limits shared by many processes, kept in Redis or Valkey: a [`Backend`] of the limiter.
///
/// All limiters whose `Shared` uses the same store and account draw from one limit per key. Each
/// decision is one script call over all buckets of all keys of a request; ends of requests are
/// reported in the background. A dedicated thread maintains the connection, independent of the
/// program's runtime.
///
/// A request that doesn't fit leaves a ticket in the store and waits in the limiter's queue. Waiting requests of
/// several processes are admitted in the order of their [priorities and flows](paceline_limiter::limiter::WaitPolicy), those of one
/// flow in the order in which they reached the store. When an amount comes back, the
/// store sends a message to the process of the request that is next. A waiting request also asks again about
/// four times per second, which renews its ticket, and every 20 ms for a concurrency slot while the messages
/// can't be received.
///
/// # Guarantees
/// - A decision never takes longer than the [timeout](super::SharedBuilder::timeout) plus 10 ms. A
///   decision that arrives later is undone.
/// - While the store responds, all processes together never exceed the limit. If the
///   store loses its data, each process reports its requests in flight and the latest state that it knows, and
///   no process decides before all have reported, or 1.5 s have passed. If it comes back with an
///   older state (a replica that lacks the last writes, an old snapshot), that state is trusted,
///   and the lost usage is admitted once more.
/// - While the store is unavailable, [`OnFailure`](crate::OnFailure) decides, and
///   [`status`](Self::status) counts these decisions. Everything admitted meanwhile is charged
///   before the store decides again, within 100 ms of its return. If keys are
///   [spread](super::SharedBuilder::spread), those of a node that is still down are charged when it
///   returns; the same holds for a key that the store can't process, because it holds another kind
///   of value.
/// - A repeated reservation call reserves once, and a reservation ends once. A charge without
///   reservation is executed once if repeated within a minute; after that it may be charged twice
///   rather than not at all.
/// - The amounts held by a dead process count as used after the [reservation's
///   lifetime](super::SharedBuilder::reservation_ttl); its concurrency slots become free then.
///
/// # Cancel safety
/// Dropping the future of a decision undoes the decision, in the store too.
///
/// ```
/// use std::sync::Arc;
/// use paceline_cluster::{OnFailure, Shared};
/// use paceline_limiter::limiter::Limiter;
/// use paceline_limiter::quota::{Cost, Quota};
///
/// // No server listens on this port, so each process enforces its share of the limit.
/// let shared = Shared::builder("redis://127.0.0.1:1", "team-a")
///     .on_failure(OnFailure::LocalShare)
///     .connect()?;
/// let limiter = Limiter::builder()
///     .quota("gpt-4o", Quota::new().rpm(500))
///     .backend(Arc::clone(&shared) as _)
///     .build()?;
///
/// limiter.try_acquire("gpt-4o", &Cost::new())?.settle(&Cost::new());
/// assert_eq!(shared.status().degraded_local, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Shared {
    account: String,
    coordinator: Arc<Coordinator>,
    worker: Worker,
}

impl Shared {
    /// Returns the connection state and counters.
    pub fn status(&self) -> SharedStatus {
        let (connection, counters) =
            (&self.coordinator.store.connection, &self.coordinator.store.counters);
        SharedStatus {
            connected: connection.is_available(),
            away_since: connection.outage().map(|outage| outage.since),
            outages: counters.outages.get(),
            decided: counters.decided.get(),
            decided_by_lease: counters.leased.get(),
            degraded_closed: counters.closed.get(),
            degraded_open: counters.open.get(),
            degraded_local: counters.local.get(),
            uncharged_requests: counters.uncharged_requests.get(),
            uncharged_tokens: counters.uncharged_tokens.get(),
            retries: counters.retries.get(),
            timeouts: counters.timeouts.get(),
            unacknowledged: counters.unacknowledged.get(),
            undelivered_keys: self.coordinator.count_undelivered_keys(),
            connects: counters.connects.get(),
            latency: counters.latency.get(),
            members: counters.members.get(),
            opened: u64::try_from(self.coordinator.reservations.lock().count_open())
                .unwrap_or(u64::MAX),
        }
    }

    /// Returns the cause of the current outage and what to do about it; `None` while the store is
    /// available.
    pub fn outage_cause(&self) -> Option<String> {
        let outage = self.coordinator.store.connection.outage()?;
        Some(outage.cause.to_string())
    }

    pub(super) fn start(
        server: Server,
        account: &str,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SharedError> {
        let redis_keys = RedisKeys::new(account, settings.spread);
        let coordinator = Arc::new(Coordinator::new(Store::new(redis_keys, settings, clock)));
        let wakes = Arc::clone(&coordinator).listen_for_wakes(server.clone());
        let monitor = ConnectionMonitor::new(Arc::clone(&coordinator), server);
        let (upkeep, leases) =
            (Arc::clone(&coordinator).upkeep(), Arc::clone(&coordinator).maintain_leases());
        let tls = coordinator.store.settings.tls.clone();
        let task = async {
            dial::set_node_tls(tls);
            tokio::join!(monitor.run(), upkeep, leases, wakes);
        };
        let worker = Worker::start("paceline-shared", task).map_err(SharedError::Thread)?;
        Ok(Self { account: account.to_owned(), coordinator, worker })
    }

    fn spawn_delivery(&self, operation: Operation, id: Id, groups: Vec<Group>) {
        self.worker.handle().spawn(self.coordinator.deliver(operation, id, groups));
    }

    /// Undoes a reservation in the store, whether it was granted, refused or not received.
    fn undo(&self, id: Id, reservation: &Reservation) {
        let groups = self.coordinator.groups(reservation, &reservation.cost);
        self.spawn_delivery(Operation::Release { unsure: true }, id, groups);
    }

    /// Starts a reset. The receiver gets a message when the store has confirmed it.
    fn start_reset(&self, key: &str) -> oneshot::Receiver<()> {
        self.coordinator.fallback.lock().reset(key);
        self.coordinator.leases.reset(key);
        let rules = self.coordinator.store.views.lock().rules(key);
        let groups = vec![Group::without_amounts(key, rules)];
        let id = self.coordinator.store.id();
        let delivery = self.coordinator.deliver(Operation::Reset, id, groups);
        let (done, confirmed) = oneshot::channel();
        self.worker.handle().spawn(async move {
            delivery.await;
            let _ = done.send(());
        });
        confirmed
    }

    /// Starts a call. Calls reach the store in the order in which they are started.
    fn start_reserving(&self, reservation: &Arc<Reservation>, waits: bool) -> Reserving {
        let coordinator = Arc::clone(&self.coordinator);
        if coordinator.store.connection.is_unavailable() {
            return Box::pin(std::future::ready(coordinator.decide_locally(reservation, waits)));
        }
        let request = coordinator.begin_request(reservation, waits);
        let (decision, decided) = oneshot::channel();
        self.worker.handle().spawn(async move {
            // The receiver is dropped if the caller has cancelled.
            let _ = decision.send(Arc::clone(&coordinator).reserve(request).await);
        });
        let (coordinator, reservation) = (Arc::clone(&self.coordinator), Arc::clone(reservation));
        Box::pin(async move {
            let decide_locally = |_| coordinator.decide_locally(&reservation, waits);
            decided.await.unwrap_or_else(decide_locally)
        })
    }
}

impl Backend for Shared {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        self.start_reserving(reservation, true)
    }

    fn reserve_once(&self, reservation: &Arc<Reservation>) -> Reserving {
        self.start_reserving(reservation, false)
    }

    fn recheck(&self, reservation: &Arc<Reservation>) -> Option<Rechecking> {
        self.coordinator.reservations.lock().recheck(reservation)
    }

    fn max_ahead(&self, reservation: &Reservation) -> usize {
        // The first request of a queue leases for those that follow.
        let leases = self.coordinator.store.settings.mode == SharingMode::Lease;
        if leases && Leases::supports(reservation) { 0 } else { MAX_AHEAD }
    }

    fn reserve_here(&self, reservation: &Arc<Reservation>) -> Option<Result<(), ReserveError>> {
        let coordinator = &self.coordinator;
        let has_leases = coordinator.store.settings.mode == SharingMode::Lease;
        if !has_leases || !coordinator.leases.try_take(reservation, coordinator.store.ticks.now()) {
            return None;
        }
        coordinator.store.counters.leased.add(1);
        // Removes the request from the store's queue.
        let refused = coordinator.reservations.lock().remove(reservation);
        if let Some((id, _)) = refused {
            self.undo(id, reservation);
        }
        Some(Ok(()))
    }

    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), ReserveError> {
        let coordinator = Arc::clone(&self.coordinator);
        if coordinator.store.connection.is_unavailable() {
            return coordinator.decide_locally(reservation, false);
        }
        let request = coordinator.begin_request(reservation, false);
        let id = request.id;
        let (decision, decided) = mpsc::sync_channel(1);
        self.worker.handle().spawn(async move {
            let _ = decision.send(coordinator.reserve(request).await);
        });
        let (coordinator, in_time) = (&self.coordinator, self.patience() + WORKER_GRACE);
        decided
            .recv_timeout(in_time)
            .or_else(|_| {
                let _on_worker = self.worker.handle().enter();
                match coordinator.cancel(reservation, id) {
                    true => Ok(coordinator.decide_locally(reservation, false)),
                    // The decision has arrived in the meantime.
                    false => decided.recv(),
                }
            })
            .unwrap_or_else(|_| coordinator.decide_locally(reservation, false))
    }

    fn patience(&self) -> Duration {
        self.coordinator.store.settings.timeout
    }

    fn end(&self, reservation: &Arc<Reservation>, ending: Ending) {
        // Remove the reservation before its amounts are released, so that a pending call notices.
        let entry = self.coordinator.reservations.lock().remove(reservation);
        if let Some(beyond) = self.coordinator.leases.end(reservation, &ending) {
            if let Some((id, _)) = entry {
                self.undo(id, reservation);
            }
            for piece in beyond {
                self.spawn_delivery(
                    Operation::Charge,
                    self.coordinator.store.id(),
                    vec![Group::single(piece)],
                );
            }
            return;
        }
        let Some((id, state)) = entry else { return };
        let unsure = state == ReservationState::Pending;
        match state {
            ReservationState::AdmittedLocally { outage, at } => {
                let owed = self.coordinator.end_local_admission(reservation, &ending, outage, at);
                if let Some(owed) = owed {
                    self.spawn_delivery(Operation::Charge, self.coordinator.store.id(), owed);
                }
            }
            ReservationState::Pending
            | ReservationState::Queued { .. }
            | ReservationState::Held { .. } => {
                let (operation, cost) = match &ending {
                    Ending::Settled(cost) => (Operation::Settle { unsure }, cost),
                    Ending::Released => (Operation::Release { unsure }, &reservation.cost),
                };
                if self.coordinator.store.connection.is_unavailable() {
                    self.coordinator.fallback.lock().release_concurrency(reservation);
                }
                self.spawn_delivery(operation, id, self.coordinator.groups(reservation, cost));
            }
        }
    }

    fn charge(&self, reservation: &Arc<Reservation>) {
        if self.coordinator.store.connection.is_unavailable() {
            return self.coordinator.fallback.lock().add_debt(reservation);
        }
        let groups = self.coordinator.groups(reservation, &reservation.cost);
        self.spawn_delivery(Operation::Charge, self.coordinator.store.id(), groups);
    }

    fn reset(&self, key: &str) {
        drop(self.start_reset(key));
    }

    fn reset_confirmed(&self, key: &str) -> Resetting {
        let (confirmed, patience) = (self.start_reset(key), self.patience());
        let in_time = async move { tokio::time::timeout(patience, confirmed).await };
        let confirmed = self.worker.handle().spawn(in_time);
        Box::pin(async move { matches!(confirmed.await, Ok(Ok(Ok(())))) })
    }

    fn refresh(&self, reservation: &Arc<Reservation>) -> Refreshing {
        let (coordinator, reservation) = (Arc::clone(&self.coordinator), Arc::clone(reservation));
        let refresh = async move {
            for group in coordinator.groups(&reservation, &Cost::new().requests(0)) {
                if let Err(failure) = coordinator.read(&group.pieces).await {
                    coordinator.on_background_failure(&failure);
                }
            }
        };
        let refreshed = self.worker.handle().spawn(refresh);
        Box::pin(async move {
            let _ = refreshed.await;
        })
    }

    fn known_at(&self, key: &str) -> Option<Timestamp> {
        let store = &self.coordinator.store;
        let age = store.views.lock().age(key, store.slot(key), store.ticks.now())?;
        Some(store.clock.now() - age)
    }

    fn levels(&self, key: &str, rules: &[Rule]) -> Option<Vec<Level>> {
        let (store, now) = (&self.coordinator.store, self.coordinator.store.clock.now());
        let ticks = store.ticks.now();
        let slot = store.slot(key);
        let mut buckets = store.views.lock().buckets(key, slot, &rules.into(), ticks, now)?;
        let leased = self.coordinator.leases.amounts(key, rules, ticks).unwrap_or_default();
        for ((rule, bucket), (used, free)) in rules.iter().zip(&mut buckets).zip(leased) {
            bucket.drop_hold(used.saturating_add(free));
            bucket.charge(rule, used, now);
        }
        Some(rules.iter().zip(buckets).map(|(rule, bucket)| bucket.level(rule, now)).collect())
    }

    fn status(&self) -> Option<BackendStatus> {
        let SharedStatus { connected, members, .. } = self.status();
        let counters = &self.coordinator.store.counters;
        let degraded = [&counters.closed, &counters.open, &counters.local];
        let degraded = degraded.into_iter().map(|counter| counter.get()).sum();
        let admits_alone = self.coordinator.store.settings.on_failure != OnFailure::Closed;
        Some(BackendStatus { connected, members, degraded, admits_alone })
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.status().measurements()
    }

    fn close(&self) -> Closing {
        let (done, is_done) = oneshot::channel();
        let coordinator = Arc::clone(&self.coordinator);
        self.worker.handle().spawn(async move {
            coordinator.return_leases();
            coordinator.close().await;
            let _ = done.send(());
        });
        Box::pin(async move {
            let _ = is_done.await;
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("account", &self.account)
            .field("settings", &self.coordinator.store.settings)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// The number of calls for requests that aren't the first of their queues. The store takes some 20 us for
/// each, so that even all of them are far from the timeout.
const MAX_AHEAD: usize = 128;
/// The extra time beyond the timeout that a blocked caller allows the worker thread.
const WORKER_GRACE: Duration = Duration::from_millis(5);
