//! Requests, renews and returns leases.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::Rule;
use paceline_limiter::limiter::{Clock, Ending, Reserved};
use paceline_limiter::quota::{Cost, Key};
use parking_lot::Mutex;

use super::leases::Leased;
use super::{KeyLease, LeaseCall, LeaseLimits, Leases};
use crate::SharingMode;
use crate::shared::coordinator::{Coordinator, ReserveRequest};
use crate::shared::failure::Failure;
use crate::shared::piece::{Group, Piece};
use crate::shared::script::{LeaseAnswer, Operation, Outcome, Response, RetryAfter};
use crate::shared::settings::micros;

/// A lease with a call that the store hasn't answered yet.
struct OpenCall {
    lease: Arc<Mutex<KeyLease>>,
    piece: Piece,
}

impl OpenCall {
    fn new(
        key: &Key,
        rules: &Arc<[Rule]>,
        lease: Arc<Mutex<KeyLease>>,
        LeaseCall { used, wanted }: LeaseCall,
    ) -> Self {
        let (key, rules) = (key.clone(), Arc::clone(rules));
        Self { lease, piece: Piece { key, rules, amounts: used, lease: Some(wanted) } }
    }
}

impl Coordinator {
    /// Decides about a request by leases, and requests a larger lease from the store if too little is
    /// held. Returns `false` if the store must decide about the request itself. The store decides
    /// about all queued requests, to admit them in order.
    ///
    /// # Errors
    /// Returns [`Failure::Cancelled`] if the request was cancelled in the meantime, or the
    /// [`Failure`] of the call to the store.
    pub(crate) async fn reserve_by_lease(&self, request: &ReserveRequest) -> Result<bool, Failure> {
        let ReserveRequest { reservation, id, is_queued, started_at, .. } = request;
        let can_lease =
            self.store.settings.mode == SharingMode::Lease && Leases::supports(reservation);
        if *is_queued || !can_lease {
            return Ok(false);
        }
        for scope in reservation.scopes.iter().filter(|scope| !scope.rules.is_empty()) {
            if !self.ensure_lease(scope, &reservation.cost, *started_at).await? {
                return Ok(false);
            }
        }
        if !self.leases.try_take(reservation, self.store.ticks.now()) {
            return Ok(false);
        }
        if self.reservations.lock().finish_call(reservation, *id, None) {
            self.store.counters.leased.add(1);
            return Ok(true);
        }
        self.leases.end(reservation, &Ending::Released);
        Err(Failure::Cancelled)
    }

    /// Renews leases in the background, and returns unused ones.
    pub(crate) async fn maintain_leases(self: Arc<Self>) {
        if self.store.settings.mode != SharingMode::Lease {
            return;
        }
        let pause = (self.store.settings.lease / CHECKS_PER_LEASE).max(MIN_INTERVAL);
        let most = if self.store.redis_keys.is_spread() { 1 } else { LEASES_PER_CALL };
        loop {
            tokio::time::sleep(pause).await;
            let now = self.store.ticks.now();
            self.leases.remove_expired(now);
            if self.store.connection.is_available() {
                let due = self.leases.due(now).into_iter();
                let mut due = due.filter_map(|leased| self.prepare_renewal(leased, now)).peekable();
                while due.peek().is_some() {
                    let calls = due.by_ref().take(most).collect();
                    tokio::spawn(Arc::clone(&self).renew_leases(calls, now));
                }
            }
        }
    }

    /// Returns all leases. Must be called on the worker's runtime.
    pub(crate) fn return_leases(self: &Arc<Self>) {
        for (key, rules, LeaseCall { used, wanted }) in self.leases.close() {
            let piece = Piece { key, rules, amounts: used, lease: None };
            tokio::spawn(self.deliver(Operation::Return, wanted.id, vec![Group::single(piece)]));
        }
    }

    /// Requests a lease for one key unless the current one covers the cost. Returns `false` if no
    /// lease covers it.
    async fn ensure_lease(
        &self,
        scope: &Reserved,
        cost: &Cost,
        started_at: Timestamp,
    ) -> Result<bool, Failure> {
        let Reserved { key, rules, .. } = scope;
        let lease = self.leases.lease(scope, || self.store.id());
        let limits = self.lease_limits(key, rules);
        let call = {
            let (mut lease, now) = (lease.lock(), self.store.ticks.now());
            if lease.can_take(rules, cost, now) {
                return Ok(true);
            }
            if !lease.can_request(rules, cost, now) {
                return Ok(false);
            }
            lease.prepare_call(Some(cost), &limits, now)
        };
        let call = OpenCall::new(key, rules, lease, call);
        self.request_leases(slice::from_ref(&call), started_at).await
    }

    /// Prepares the renewal of a lease that is still due.
    fn prepare_renewal(&self, (key, lease): Leased, now: Timestamp) -> Option<OpenCall> {
        let rules = Arc::clone(lease.lock().rules());
        let limits = self.lease_limits(&key, &rules);
        let call = {
            let mut lease = lease.lock();
            lease.is_due(now).then(|| lease.prepare_call(None, &limits, now))?
        };
        Some(OpenCall::new(&key, &rules, lease, call))
    }

    /// Renews leases in one call or, if the store can't process one of their keys, each by itself.
    async fn renew_leases(self: Arc<Self>, calls: Vec<OpenCall>, now: Timestamp) {
        let Err(failure) = self.request_leases(&calls, now).await else { return };
        self.on_background_failure(&failure);
        if failure.is_call_specific() && calls.len() > 1 {
            for call in &calls {
                if let Err(failure) = self.request_leases(slice::from_ref(call), now).await {
                    self.on_background_failure(&failure);
                }
            }
        }
    }

    /// Sends the calls of leases, and returns whether all were granted.
    async fn request_leases(
        &self,
        calls: &[OpenCall],
        started_at: Timestamp,
    ) -> Result<bool, Failure> {
        let pieces: Vec<_> = calls.iter().map(|call| call.piece.clone()).collect();
        let operation = Operation::Lease { ttl: micros(self.store.settings.lease) };
        let response = self.store.call(operation, self.store.id(), &pieces, started_at).await;
        let (answers, failure) = match response {
            Ok(Response { outcome: Outcome::Leases(answers), .. }) => (answers, None),
            Ok(_) => (Vec::new(), Some(Failure::UNREADABLE)),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let mut are_granted = true;
        let mut answers = answers.into_iter();
        for call in calls {
            let mut lease = call.lease.lock();
            let answer = answers.next();
            are_granted &= matches!(answer, Some(LeaseAnswer::Granted(_)));
            match answer {
                Some(LeaseAnswer::Granted(granted)) => lease.on_granted(&granted),
                Some(LeaseAnswer::Refused(wait)) => lease.on_refused(self.retry_at(wait)),
                Some(LeaseAnswer::Unknown) => lease.on_unknown(),
                None => lease.on_no_response(),
            }
        }
        failure.map_or(Ok(are_granted), Err)
    }

    /// Returns when to request a lease again after a refusal. The wait is short, since another process
    /// may return its lease early.
    fn retry_at(&self, wait: RetryAfter) -> Timestamp {
        let most = self.store.settings.lease / MAX_RETRY_DIVISOR;
        let wait = match wait {
            RetryAfter::In(micros) => Duration::from_micros(micros).min(most),
            _ => most,
        };
        self.store.ticks.now() + wait
    }

    /// Returns the limits for lease calls, from the last known state of the key.
    fn lease_limits(&self, key: &str, rules: &Arc<[Rule]>) -> LeaseLimits {
        let (store, now) = (&self.store, self.store.clock.now());
        let (slot, ticks) = (store.slot(key), store.ticks.now());
        let buckets = store.views.lock().buckets(key, slot, rules, ticks, now);
        let available = buckets.map(|buckets| {
            let level = rules.iter().zip(&buckets).map(|(rule, bucket)| bucket.level(rule, now));
            level.map(|level| level.available).collect()
        });
        LeaseLimits { available, members: store.counters.members.get() }
    }
}

/// The number of times per lease duration at which leases are checked for due renewals.
const CHECKS_PER_LEASE: u32 = 32;
/// The number of leases in one call, such that it takes about a millisecond.
const LEASES_PER_CALL: usize = 100;
const MIN_INTERVAL: Duration = Duration::from_millis(5);
/// The fraction (1/8) of a lease duration after which a lease is requested again after a refusal, at
/// the latest.
const MAX_RETRY_DIVISOR: u32 = 8;
