//! The decision about a request: by a lease, by the store, or locally while the store is
//! unavailable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Shortfall, Wait};
use paceline_limiter::limiter::{Clock, Ending, Reservation, ReserveError};
use paceline_limiter::quota::Cost;
use paceline_limiter::seam;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::failure::Failure;
use super::fallback::Fallback;
use super::lease::Leases;
use super::log_limit::LogLimit;
use super::outbox::Outbox;
use super::piece::{Group, Piece};
use super::reservations::{ReservationState, Reservations};
use super::script::{Id, Operation, Order, Outcome, RetryAfter};
use super::settings::micros;
use super::store::Store;
use super::turns::Turns;
use crate::OnFailure;

/// Decides about requests, and reports their ends to the store.
#[derive(Debug)]
pub(super) struct Coordinator {
    pub(super) store: Store,
    pub(super) reservations: Mutex<Reservations>,
    pub(super) fallback: Mutex<Fallback>,
    pub(super) outbox: Mutex<Outbox>,
    /// Limits the number of concurrent background calls.
    pub(super) background_calls: Semaphore,
    pub(super) leases: Leases,
    /// Limits the lines about failed calls, and about outages.
    pub(super) failure_log: Mutex<LogLimit>,
    pub(super) outage_log: Mutex<LogLimit>,
}

/// A request for a decision of the store.
#[derive(Debug)]
pub(super) struct ReserveRequest {
    pub(super) reservation: Arc<Reservation>,
    pub(super) id: Id,
    /// True if the caller retries after a refusal.
    pub(super) waits: bool,
    /// True if the request was refused before, and waits in the store's queue.
    pub(super) is_queued: bool,
    /// The start of the call, by the store's `ticks`.
    pub(super) started_at: Timestamp,
}

impl Coordinator {
    pub(super) fn new(store: Store) -> Self {
        let lease = Duration::from_micros(micros(store.settings.lease));
        Self {
            store,
            leases: Leases::new(lease),
            reservations: Mutex::default(),
            fallback: Mutex::default(),
            outbox: Mutex::default(),
            background_calls: Semaphore::new(MAX_BACKGROUND_CALLS),
            failure_log: Mutex::new(LogLimit::new(MAX_FAILURES_LOGGED)),
            outage_log: Mutex::new(LogLimit::new(MAX_OUTAGES_LOGGED)),
        }
    }

    pub(super) fn begin_request(
        &self,
        reservation: &Arc<Reservation>,
        waits: bool,
    ) -> ReserveRequest {
        let (id, is_queued) = self.reservations.lock().begin(reservation, || self.store.id());
        let reservation = Arc::clone(reservation);
        ReserveRequest { reservation, id, waits, is_queued, started_at: self.store.ticks.now() }
    }

    /// Decides about a request by a lease or by the store, or locally if the store does not answer
    /// in time.
    pub(super) async fn reserve(
        self: Arc<Self>,
        request: ReserveRequest,
    ) -> Result<(), ReserveError> {
        let ReserveRequest { reservation, id, waits, .. } = &request;
        let decision = match self.reserve_by_lease(&request).await {
            Ok(true) => return Ok(()),
            Ok(false) => self.reserve_in_store(&request).await,
            Err(failure) => Err(failure),
        };
        let decision = match decision {
            Ok(decision) => decision,
            Err(failure) => {
                self.on_call_failure(&failure);
                return match self.cancel(reservation, *id) {
                    true => self.decide_locally(reservation, *waits),
                    false => Err(ReserveError::Full(Wait::Unknown)),
                };
            }
        };
        let state = match decision {
            Ok(()) => Some(ReservationState::Held { renewed: self.store.ticks.now() }),
            Err(_) => waits.then(|| ReservationState::Queued { since: self.store.ticks.now() }),
        };
        if !self.store.connection.is_unavailable() {
            self.fallback.lock().discard_shares(reservation);
        }
        // If the call was cancelled in the meantime, a release was already sent to the store.
        self.reservations.lock().finish_call(reservation, *id, state);
        self.store.counters.decided.add(1);
        decision
    }

    /// Decides without the store, by the [`OnFailure`] policy.
    pub(super) fn decide_locally(
        &self,
        reservation: &Arc<Reservation>,
        waits: bool,
    ) -> Result<(), ReserveError> {
        let counters = &self.store.counters;
        match self.store.settings.on_failure {
            OnFailure::Closed => {
                counters.closed.add(1);
                Err(self.unavailable_for(RETRY_WHILE_UNAVAILABLE))
            }
            OnFailure::Open => {
                counters.open.add(1);
                self.admit_locally(&mut self.fallback.lock(), reservation);
                Ok(())
            }
            OnFailure::LocalShare => {
                counters.local.add(1);
                self.reserve_local_share(reservation).map_err(|error| self.cap_wait(error, waits))
            }
        }
    }

    fn reserve_local_share(&self, reservation: &Arc<Reservation>) -> Result<(), ReserveError> {
        let (store, now) = (&self.store, self.store.clock.now());
        let mut fallback = self.fallback.lock();
        fallback.reserve(reservation, now, &self.turns(), |reserved| {
            let slot = store.slot(&reserved.key);
            let ticks = store.ticks.now();
            store.views.lock().buckets(&reserved.key, slot, &reserved.rules, ticks, now)
        })?;
        self.admit_locally(&mut fallback, reservation);
        Ok(())
    }

    fn turns(&self) -> Turns {
        let (store, clock) = (&self.store, self.store.heartbeat_clock.lock());
        Turns {
            members: store.counters.members.get().max(1),
            rank: store.counters.rank.get(),
            last_seen: clock.last_seen(),
            now: clock.at(store.ticks.now()),
            reservation_ttl: micros(store.settings.ttl),
        }
    }

    fn admit_locally(&self, fallback: &mut Fallback, reservation: &Arc<Reservation>) {
        fallback.add_debt(reservation);
        let state = ReservationState::AdmittedLocally {
            outage: fallback.outage(),
            at: self.store.clock.now(),
        };
        self.reservations.lock().admit_locally(reservation, self.store.id(), state);
    }

    /// Shortens the wait of a refusal by the local share, since the store may be available again
    /// earlier. A request that never fits the share may fit the limit.
    fn cap_wait(&self, error: ReserveError, waits: bool) -> ReserveError {
        match error.wait() {
            Wait::Never => self.unavailable_for(RETRY_WHILE_UNAVAILABLE),
            Wait::At(time)
                if !waits || time <= self.store.clock.now() + RETRY_WHILE_UNAVAILABLE =>
            {
                error
            }
            Wait::Unknown if !waits => error,
            _ => self.unavailable_for(RETRY_WHILE_UNAVAILABLE),
        }
    }

    fn unavailable_for(&self, wait: Duration) -> ReserveError {
        ReserveError::Away { until: self.store.clock.now() + wait }
    }

    /// Requests a reservation of all keys from the store. The inner `Result` is the store's
    /// decision.
    ///
    /// # Errors
    /// Returns [`Failure`] if there is no decision.
    async fn reserve_in_store(
        self: &Arc<Self>,
        request: &ReserveRequest,
    ) -> Result<Result<(), ReserveError>, Failure> {
        let ReserveRequest { reservation, id, waits, started_at, .. } = request;
        let ttl = micros(self.store.settings.ttl);
        let generation = self.store.generation.load(Ordering::Relaxed);
        let order = Order::of(seam::precedence(reservation), generation);
        let operation = Operation::Reserve { ttl, waits: *waits, order };
        let mut granted = Vec::new();
        for group in self.groups(reservation, &reservation.cost) {
            if !self.reservations.lock().is_pending(reservation, *id) {
                return Err(Failure::Cancelled);
            }
            let asked_at = self.store.clock.now();
            let response = self.store.call(operation, *id, &group.pieces, *started_at).await?;
            match response.outcome {
                Outcome::Done => granted.push(group),
                Outcome::Refused { part, rule, wait } => {
                    self.release_granted(request, &granted).await;
                    let earliest = asked_at + Duration::from_micros(response.earliest);
                    let wait = self.retry_wait(wait, earliest, *waits);
                    let scope = group.scopes.get(part).copied().unwrap_or_default();
                    let shortfall = Shortfall { rule, wait };
                    let earliest = Some(earliest);
                    return Ok(Err(ReserveError::Short { scope, shortfall, earliest }));
                }
                // The request ended, and its end reached the store before this call.
                Outcome::Unknown => return Err(Failure::Cancelled),
                _ => return Err(Failure::UNREADABLE),
            }
        }
        Ok(Ok(()))
    }

    /// Releases the groups that were granted before another one refused, and waits for the store to
    /// confirm: a late copy of the release would remove the grant of the next attempt under this
    /// id. If the store does not confirm, the next attempt uses another id.
    async fn release_granted(self: &Arc<Self>, request: &ReserveRequest, granted: &[Group]) {
        let ReserveRequest { reservation, id, started_at, .. } = request;
        let release = Operation::Release { unsure: false };
        for group in granted {
            if let Err(failure) = self.store.call(release, *id, &group.pieces, *started_at).await {
                self.on_call_failure(&failure);
                self.cancel(reservation, *id);
                return;
            }
        }
    }

    /// Returns when to retry a refused request, which can't fit before `earliest`. It asks again before that, and may be
    /// woken.
    fn retry_wait(&self, wait: RetryAfter, earliest: Timestamp, waits: bool) -> Wait {
        let now = self.store.clock.now();
        match wait {
            RetryAfter::Never => Wait::Never,
            RetryAfter::In(micros) => Wait::At(now + Duration::from_micros(micros)),
            RetryAfter::Unknown if earliest > now => Wait::At(earliest),
            RetryAfter::Unknown if !waits || self.store.is_listening.load(Ordering::Relaxed) => {
                Wait::Unknown
            }
            RetryAfter::Unknown => Wait::At(now + RECHECK_UNWOKEN),
        }
    }

    /// Ends a request that was admitted without the store during outage number `outage`. If that outage has
    /// ended, the reserved cost has been charged to the store; returns usage beyond it, to be charged.
    pub(super) fn end_local_admission(
        &self,
        reservation: &Reservation,
        ending: &Ending,
        outage: u64,
        sent: Timestamp,
    ) -> Option<Vec<Group>> {
        let actual = match ending {
            Ending::Settled(cost) => Some(cost),
            Ending::Released => None,
        };
        let mut fallback = self.fallback.lock();
        if fallback.outage() == outage {
            fallback.end(reservation, actual, &self.turns(), sent, self.store.clock.now());
            return None;
        }
        drop(fallback);
        let mut groups = self.groups(reservation, actual?);
        let pieces = groups.iter_mut().flat_map(|group| group.pieces.iter_mut().zip(&group.scopes));
        let subtract = |(piece, &scope): (&mut Piece, &usize)| {
            piece.subtract(&reservation.scopes[scope], &reservation.cost)
        };
        let beyond: Vec<_> = pieces.map(subtract).collect();
        beyond.contains(&true).then_some(groups)
    }

    pub(super) fn groups(&self, reservation: &Reservation, cost: &Cost) -> Vec<Group> {
        Group::for_reservation(reservation, cost, self.store.redis_keys.is_spread())
    }
}

/// The maximum number of concurrent background calls.
pub(super) const MAX_BACKGROUND_CALLS: usize = 64;
/// The numbers of failed calls and of outages that are logged in ten seconds.
const MAX_FAILURES_LOGGED: u32 = 1;
const MAX_OUTAGES_LOGGED: u32 = 3;
/// The interval at which requests are retried while the store is unavailable.
const RETRY_WHILE_UNAVAILABLE: Duration = Duration::from_millis(20);
/// The interval at which a waiting request asks again if the store doesn't wake it.
const RECHECK_UNWOKEN: Duration = Duration::from_millis(20);
