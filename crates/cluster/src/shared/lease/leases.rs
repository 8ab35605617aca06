use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use paceline_limiter::Timestamp;
use paceline_limiter::engine::Rule;
use paceline_limiter::limiter::{Ending, Reservation, Reserved};
use paceline_limiter::quota::{Cost, Key};
use paceline_limiter::seam;
use parking_lot::{Mutex, RwLock};

use super::{KeyLease, LeaseCall, LeaseDebit};
use crate::shared::piece::Piece;
use crate::shared::script::Id;

/// The leases of this process, by key.
#[derive(Debug)]
pub(crate) struct Leases {
    keys: RwLock<HashMap<Key, Arc<Mutex<KeyLease>>, RandomState>>,
    /// The duration of each lease.
    duration: Duration,
    next_generation: AtomicU32,
}

/// A key and its lease.
pub(crate) type Leased = (Key, Arc<Mutex<KeyLease>>);

impl Leases {
    pub(crate) fn new(duration: Duration) -> Self {
        Self { keys: RwLock::default(), duration, next_generation: AtomicU32::new(1) }
    }

    /// Returns whether leases can decide about all keys of a reservation. They hold whole costs of their keys.
    pub(crate) fn supports(reservation: &Reservation) -> bool {
        let mut limited = reservation.scopes.iter().filter(|scope| !scope.rules.is_empty());
        !reservation.scopes.iter().all(|scope| scope.rules.is_empty())
            && limited
                .all(|scope| !seam::is_spending_key(scope) && KeyLease::supports(&scope.rules))
    }

    /// Takes a reservation from the leases of all its keys, or of none.
    pub(crate) fn try_take(&self, reservation: &Reservation, now: Timestamp) -> bool {
        let Reservation { scopes, cost, .. } = reservation;
        let keys = self.keys.read();
        let mut limited = scopes.iter().filter(|scope| !scope.rules.is_empty()).peekable();
        if limited.peek().is_none() || scopes.iter().any(seam::is_spending_key) {
            return false;
        }
        let short = limited.find(|scope| {
            let lease = keys.get(&scope.key);
            let taken = lease.and_then(|l| l.lock().try_take(&scope.rules, cost, now));
            taken
                .inspect(|taken| seam::note(scope).store(taken.pack(), Ordering::Relaxed))
                .is_none()
        });
        if short.is_none() {
            return true;
        }
        for scope in scopes {
            if let Some(taken) = take_debit(scope)
                && let Some(lease) = keys.get(&scope.key)
            {
                lease.lock().undo_take(taken, cost);
            }
        }
        false
    }

    /// Ends a reservation that was taken from leases, and returns the usage that must be charged
    /// separately because a lease is gone. Returns `None` if the reservation was not taken from leases.
    pub(crate) fn end(&self, reservation: &Reservation, ending: &Ending) -> Option<Vec<Piece>> {
        let mut beyond = None;
        for scope in &reservation.scopes {
            let Some(taken) = take_debit(scope) else { continue };
            let beyond = beyond.get_or_insert_with(Vec::new);
            let keys = self.keys.read();
            match (keys.get(&scope.key), ending) {
                (Some(lease), Ending::Settled(actual)) => {
                    lease.lock().settle(taken, &reservation.cost, actual);
                }
                (Some(lease), Ending::Released) => {
                    lease.lock().release(taken, &reservation.cost);
                }
                (None, Ending::Settled(actual)) => {
                    beyond.extend(beyond_reservation(scope, actual, &reservation.cost));
                }
                (None, Ending::Released) => {}
            }
        }
        beyond
    }

    /// Returns the lease of a key; creates an empty one if needed.
    pub(crate) fn lease(&self, scope: &Reserved, id: impl FnOnce() -> Id) -> Arc<Mutex<KeyLease>> {
        if let Some(lease) = self.keys.read().get(&scope.key) {
            return Arc::clone(lease);
        }
        let new = || {
            // A new lease must not reuse a generation of an earlier lease of the key.
            let generation = self.next_generation.fetch_add(GENERATION_STEP, Ordering::Relaxed);
            let rules = Arc::clone(&scope.rules);
            Arc::new(Mutex::new(KeyLease::new(rules, id(), generation, self.duration)))
        };
        let mut keys = self.keys.write();
        Arc::clone(keys.entry(scope.key.clone()).or_insert_with(new))
    }

    /// Returns the leases that are due for a call.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<Leased> {
        let keys = self.keys.read();
        let due = keys.iter().filter(|(_, lease)| lease.lock().is_due(now));
        due.map(|(key, lease)| (key.clone(), Arc::clone(lease))).collect()
    }

    /// Removes expired and empty leases.
    pub(crate) fn remove_expired(&self, now: Timestamp) {
        let is_removable = |lease: &Arc<Mutex<KeyLease>>| {
            Arc::strong_count(lease) == 1 && lease.lock().is_expired(now)
        };
        if self.keys.read().values().any(is_removable) {
            self.keys.write().retain(|_, lease| !is_removable(lease));
        }
    }

    /// Closes all leases, and returns the calls that return them.
    pub(crate) fn close(&self) -> Vec<(Key, Arc<[Rule]>, LeaseCall)> {
        let all = std::mem::take(&mut *self.keys.write());
        let close = |(key, lease): (Key, Arc<Mutex<KeyLease>>)| {
            let mut lease = lease.lock();
            (!lease.is_empty()).then(|| (key, Arc::clone(lease.rules()), lease.close()))
        };
        all.into_iter().filter_map(close).collect()
    }

    pub(crate) fn reset(&self, key: &str) {
        if let Some(lease) = self.keys.read().get(key) {
            lease.lock().reset();
        }
    }

    /// Returns the unreported usage and the free amount for each rule of a key.
    pub(crate) fn amounts(
        &self,
        key: &str,
        rules: &[Rule],
        now: Timestamp,
    ) -> Option<Vec<(u64, u64)>> {
        let keys = self.keys.read();
        let lease = keys.get(key)?.lock();
        (**lease.rules() == *rules).then(|| lease.amounts(now))
    }
}

/// Takes the debit that a reservation's note records for a key.
fn take_debit(scope: &Reserved) -> Option<LeaseDebit> {
    match seam::note(scope).load(Ordering::Relaxed) {
        0 => None,
        _ => LeaseDebit::unpack(seam::note(scope).swap(0, Ordering::AcqRel)),
    }
}

/// Returns the usage beyond the reserved amount.
fn beyond_reservation(scope: &Reserved, actual: &Cost, reserved: &Cost) -> Option<Piece> {
    let mut piece = Piece::from_cost(scope, actual);
    piece.subtract(scope, reserved).then_some(piece)
}

/// The distance between the first generations of two leases, which limits how often a lease can be
/// lost before generations collide.
const GENERATION_STEP: u32 = 256;
