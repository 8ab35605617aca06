use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use compact_str::CompactString;
use foldhash::fast::RandomState;
use parking_lot::{Mutex, RwLock};

use super::{Ask, Ledger, Taken};
use crate::cluster::shared::piece::Piece;
use crate::cluster::shared::script::Id;
use crate::engine::Rule;
use crate::limiter::{Ending, Reservation, Reserved};
use crate::quota::Cost;

/// The leases of this process, key by key.
#[derive(Debug)]
pub(in crate::cluster::shared) struct Leases {
    keys: RwLock<HashMap<CompactString, Arc<Mutex<Ledger>>, RandomState>>,
    /// The lease time, in nanoseconds.
    time: u64,
    number: AtomicU32,
}

/// A key and its lease.
pub(in crate::cluster::shared) type Leased = (CompactString, Arc<Mutex<Ledger>>);

impl Leases {
    pub(in crate::cluster::shared) fn new(time: u64) -> Self {
        Self { keys: RwLock::default(), time, number: AtomicU32::new(1) }
    }

    /// Whether all of a reservation can come out of leases.
    pub(in crate::cluster::shared) fn serve(reservation: &Reservation) -> bool {
        let mut limited = reservation.scopes.iter().filter(|scope| !scope.rules.is_empty());
        !reservation.scopes.iter().all(|scope| scope.rules.is_empty())
            && limited.all(|scope| Ledger::serves(&scope.rules))
    }

    /// Takes a reservation out of what is held: of all keys or of none.
    pub(in crate::cluster::shared) fn try_take(&self, reservation: &Reservation, now: u64) -> bool {
        let Reservation { scopes, cost, .. } = reservation;
        let keys = self.keys.read();
        let mut limited = scopes.iter().filter(|scope| !scope.rules.is_empty()).peekable();
        if limited.peek().is_none() {
            return false;
        }
        let short = limited.find(|scope| {
            let ledger = keys.get(&scope.key);
            let taken = ledger.and_then(|l| l.lock().try_take(&scope.rules, cost, now));
            taken.inspect(|taken| scope.note.store(taken.pack(), Ordering::Relaxed)).is_none()
        });
        if short.is_none() {
            return true;
        }
        for scope in scopes {
            if let Some(taken) = taken(scope)
                && let Some(ledger) = keys.get(&scope.key)
            {
                ledger.lock().untake(taken, cost);
            }
        }
        false
    }

    /// Ends a reservation, if it came out of leases: what is to be charged beyond them.
    pub(in crate::cluster::shared) fn end(
        &self,
        reservation: &Reservation,
        ending: &Ending,
    ) -> Option<Vec<Piece>> {
        let mut beyond = None;
        for scope in &reservation.scopes {
            let Some(taken) = taken(scope) else { continue };
            let beyond = beyond.get_or_insert_with(Vec::new);
            let keys = self.keys.read();
            match (keys.get(&scope.key), ending) {
                (Some(ledger), Ending::Settled(actual)) => {
                    ledger.lock().settle(taken, &reservation.cost, actual);
                }
                (Some(ledger), Ending::Released) => {
                    ledger.lock().release(taken, &reservation.cost);
                }
                (None, Ending::Settled(actual)) => {
                    beyond.extend(more(scope, actual, &reservation.cost));
                }
                (None, Ending::Released) => {}
            }
        }
        beyond
    }

    /// The lease of a key; a new one, of which nothing is held yet, where there is none.
    pub(in crate::cluster::shared) fn ledger(
        &self,
        scope: &Reserved,
        id: impl FnOnce() -> Id,
    ) -> Arc<Mutex<Ledger>> {
        if let Some(ledger) = self.keys.read().get(&scope.key) {
            return Arc::clone(ledger);
        }
        let new = || {
            // None of a key begins with a number that one before it has come to.
            let number = self.number.fetch_add(FAR, Ordering::Relaxed);
            let rules = Arc::clone(&scope.rules);
            Arc::new(Mutex::new(Ledger::new(rules, (id(), number), self.time)))
        };
        let mut keys = self.keys.write();
        Arc::clone(keys.entry(scope.key.clone()).or_insert_with(new))
    }

    /// Those about which the server is to be asked now.
    pub(in crate::cluster::shared) fn due(&self, now: u64) -> Vec<Leased> {
        let keys = self.keys.read();
        let due = keys.iter().filter(|(_, ledger)| ledger.lock().is_due(now));
        due.map(|(key, ledger)| (key.clone(), Arc::clone(ledger))).collect()
    }

    /// Forgets those of which nothing is left.
    pub(in crate::cluster::shared) fn forget(&self, now: u64) {
        let over = |ledger: &Arc<Mutex<Ledger>>| {
            Arc::strong_count(ledger) == 1 && ledger.lock().is_over(now)
        };
        if self.keys.read().values().any(over) {
            self.keys.write().retain(|_, ledger| !over(ledger));
        }
    }

    /// Ends all of them: what to tell the server.
    pub(in crate::cluster::shared) fn close(&self) -> Vec<(CompactString, Arc<[Rule]>, Ask)> {
        let all = std::mem::take(&mut *self.keys.write());
        let close = |(key, ledger): (CompactString, Arc<Mutex<Ledger>>)| {
            let mut ledger = ledger.lock();
            (!ledger.is_empty()).then(|| (key, Arc::clone(ledger.rules()), ledger.close()))
        };
        all.into_iter().filter_map(close).collect()
    }

    pub(in crate::cluster::shared) fn reset(&self, key: &str) {
        if let Some(ledger) = self.keys.read().get(key) {
            ledger.lock().reset();
        }
    }

    /// For each rule of a key, what was used and not told, and what is free.
    pub(in crate::cluster::shared) fn figures(
        &self,
        key: &str,
        rules: &[Rule],
        now: u64,
    ) -> Option<Vec<(u64, u64)>> {
        let keys = self.keys.read();
        let ledger = keys.get(key)?.lock();
        (**ledger.rules() == *rules).then(|| ledger.figures(now))
    }
}

/// What a reservation has taken of a key's lease; from now on nothing.
fn taken(scope: &Reserved) -> Option<Taken> {
    match scope.note.load(Ordering::Relaxed) {
        0 => None,
        _ => Taken::unpack(scope.note.swap(0, Ordering::AcqRel)),
    }
}

/// What was taken beyond what was reserved.
fn more(scope: &Reserved, actual: &Cost, reserved: &Cost) -> Option<Piece> {
    let mut piece = Piece::of(scope, actual);
    piece.less(reserved).then_some(piece)
}

/// So many times a lease of one key lapses before its number could be that of another.
const FAR: u32 = 256;
