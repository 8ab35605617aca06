//! Requests, renews and returns leases.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{KeyLease, LeaseCall, LeaseLimits, Leases};
use crate::cluster::SharingMode;
use crate::cluster::shared::coordinator::{Coordinator, ReserveRequest, micros};
use crate::cluster::shared::failure::Failure;
use crate::cluster::shared::piece::{Group, Piece};
use crate::cluster::shared::script::{RetryAfter, Verb, Verdict};
use crate::engine::Rule;
use crate::limiter::{Clock, Ending, Reserved};
use crate::quota::{Cost, Key};
use crate::timestamp::Timestamp;

impl Coordinator {
    /// Decides about a request by leases, after asking the store for more if too little is held.
    /// Returns `false` if the store has to decide about the request itself, as it does for all
    /// waiting requests, in their order.
    ///
    /// # Errors
    /// Returns [`Failure`]; [`Failure::Cancelled`] if the request was cancelled meanwhile.
    pub(in crate::cluster::shared) async fn reserve_by_lease(
        &self,
        question: &ReserveRequest,
    ) -> Result<bool, Failure> {
        let ReserveRequest { reservation, id, is_queued, started_at, .. } = question;
        let leasing =
            self.store.settings.mode == SharingMode::Lease && Leases::supports(reservation);
        if *is_queued || !leasing {
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
            return Ok(true);
        }
        self.leases.end(reservation, &Ending::Released);
        Err(Failure::Cancelled)
    }

    /// Renews leases in the background, and returns unused ones.
    pub(in crate::cluster::shared) async fn maintain_leases(self: Arc<Self>) {
        if self.store.settings.mode != SharingMode::Lease {
            return;
        }
        let pause = (self.store.settings.lease / CHECKS_PER_LEASE).max(MIN_INTERVAL);
        loop {
            tokio::time::sleep(pause).await;
            let now = self.store.ticks.now();
            self.leases.remove_expired(now);
            if self.store.connection.is_available() {
                for (key, lease) in self.leases.due(now) {
                    tokio::spawn(Arc::clone(&self).renew_lease(key, lease));
                }
            }
        }
    }

    /// Returns all leases. Must be called on the worker's runtime.
    pub(in crate::cluster::shared) fn return_leases(self: &Arc<Self>) {
        for (key, rules, LeaseCall { id, used, .. }) in self.leases.close() {
            let piece = Piece { key, rules, amounts: used, lease: None };
            tokio::spawn(self.deliver(Verb::Return, id, vec![Group::single(piece)]));
        }
    }

    /// Makes sure that a lease covers a request's cost for one key. Returns `false` if it does not.
    async fn ensure_lease(
        &self,
        scope: &Reserved,
        cost: &Cost,
        started_at: Timestamp,
    ) -> Result<bool, Failure> {
        let Reserved { key, rules, .. } = scope;
        let lease = self.leases.lease(scope, || self.store.id());
        let room = self.lease_limits(key, rules);
        let ask = {
            let (mut lease, now) = (lease.lock(), self.store.ticks.now());
            if lease.can_take(rules, cost, now) {
                return Ok(true);
            }
            if !lease.may_ask(rules, cost, now) {
                return Ok(false);
            }
            lease.prepare_call(Some(cost), &room, now)
        };
        self.request_lease(key, rules, &lease, ask, started_at).await
    }

    async fn renew_lease(self: Arc<Self>, key: Key, lease: Arc<Mutex<KeyLease>>) {
        let rules = Arc::clone(lease.lock().rules());
        let (room, now) = (self.lease_limits(&key, &rules), self.store.ticks.now());
        let ask = {
            let mut lease = lease.lock();
            if !lease.is_due(now) {
                return;
            }
            lease.prepare_call(None, &room, now)
        };
        if let Err(failure) = self.request_lease(&key, &rules, &lease, ask, now).await {
            self.on_background_failure(&failure);
        }
    }

    /// Sends a lease call, and returns whether the lease was granted.
    async fn request_lease(
        &self,
        key: &Key,
        rules: &Arc<[Rule]>,
        lease: &Mutex<KeyLease>,
        ask: LeaseCall,
        started_at: Timestamp,
    ) -> Result<bool, Failure> {
        let LeaseCall { id, used, wanted } = ask;
        let (key, rules) = (key.clone(), Arc::clone(rules));
        let piece = Piece { key, rules, amounts: used, lease: Some(wanted) };
        let verb = Verb::Lease { ttl: micros(self.store.settings.lease) };
        let answer = self.store.call(verb, id, slice::from_ref(&piece), started_at).await;
        let mut lease = lease.lock();
        let verdict = match answer {
            Ok(answer) => answer.verdict,
            Err(failure) => {
                lease.on_no_response();
                return Err(failure);
            }
        };
        match verdict {
            Verdict::Leased(granted) => {
                lease.on_granted(granted.first().map_or(&[], |amounts| &amounts[..]));
                return Ok(true);
            }
            Verdict::Refused { wait, .. } => lease.on_refused(self.retry_at(wait)),
            Verdict::Unknown => lease.on_unknown(),
            _ => lease.on_no_response(),
        }
        Ok(false)
    }

    /// Returns when to request a lease again after a refusal: soon, since another process may
    /// return a lease early.
    fn retry_at(&self, wait: RetryAfter) -> Timestamp {
        let most = self.store.settings.lease / MAX_DRY_DIVISOR;
        let wait = match wait {
            RetryAfter::In(micros) => Duration::from_micros(micros).min(most),
            _ => most,
        };
        self.store.ticks.now() + wait
    }

    /// Returns how much this process may lease, from the last known state of the key.
    fn lease_limits(&self, key: &str, rules: &Arc<[Rule]>) -> LeaseLimits {
        let (store, now) = (&self.store, self.store.clock.now());
        let (slot, ticks) = (store.slot(key), store.ticks.now());
        let buckets = store.views.lock().buckets(key, slot, rules, ticks, now);
        let available = buckets.map(|buckets| {
            let level = rules.iter().zip(&buckets).map(|(rule, bucket)| bucket.level(rule, now));
            level.map(|level| level.available).collect()
        });
        LeaseLimits { available, members: store.counters.members.now() }
    }
}

/// The number of checks for due renewals per lease duration.
const CHECKS_PER_LEASE: u32 = 32;
const MIN_INTERVAL: Duration = Duration::from_millis(5);
/// After a refusal, no lease is requested for at most this fraction (1/8) of a lease duration.
const MAX_DRY_DIVISOR: u32 = 8;
