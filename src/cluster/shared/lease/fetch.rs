use std::slice;
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::Mutex;

use super::{Ask, Leases, Ledger, Room};
use crate::cluster::shared::core::{Core, Question, micros};
use crate::cluster::shared::failure::Failure;
use crate::cluster::shared::mode::Mode;
use crate::cluster::shared::piece::{Group, Piece};
use crate::cluster::shared::script::{InTime, Verb, Verdict};
use crate::engine::Rule;
use crate::limiter::{Clock, Ending, Reserved};
use crate::quota::Cost;

impl Core {
    /// Decides out of leases, for which the store is asked where too little is held. `false`: the
    /// store is to decide about the request itself. It does so for all who wait, in their order.
    ///
    /// # Errors
    /// [`Failure`], and [`Failure::GivenUp`] for a question that was given up meanwhile.
    pub(in crate::cluster::shared) async fn by_lease(
        &self,
        question: &Question,
    ) -> Result<bool, Failure> {
        let Question { reservation, id, queues, asked_at, .. } = question;
        let leasing = self.store.settings.mode == Mode::Lease && Leases::serve(reservation);
        if *queues || !leasing {
            return Ok(false);
        }
        for scope in reservation.scopes.iter().filter(|scope| !scope.rules.is_empty()) {
            if !self.fetch(scope, &reservation.cost, *asked_at).await? {
                return Ok(false);
            }
        }
        if !self.leases.try_take(reservation, self.store.ticks.now()) {
            return Ok(false);
        }
        if self.book.lock().conclude(reservation, *id, None) {
            return Ok(true);
        }
        self.leases.end(reservation, &Ending::Released);
        Err(Failure::GivenUp)
    }

    /// Renews leases, and gives back those that aren't used.
    pub(in crate::cluster::shared) async fn keep_leases(self: Arc<Self>) {
        if self.store.settings.mode != Mode::Lease {
            return;
        }
        let pause = (self.store.settings.lease / LOOKS).max(SHORTEST);
        loop {
            tokio::time::sleep(pause).await;
            let now = self.store.ticks.now();
            self.leases.forget(now);
            if self.store.way.is_there() {
                for (key, ledger) in self.leases.due(now) {
                    tokio::spawn(Arc::clone(&self).renew_lease(key, ledger));
                }
            }
        }
    }

    /// Gives all leases back. Must be called on the worker's runtime.
    pub(in crate::cluster::shared) fn return_leases(self: &Arc<Self>) {
        for (key, rules, Ask { id, used, .. }) in self.leases.close() {
            let piece = Piece { key, rules, amounts: used, lease: None };
            tokio::spawn(self.told(Verb::Return, id, vec![Group::of(piece)]));
        }
    }

    /// Sees to it that a request's part of one key can be taken: `false` if it can't.
    async fn fetch(&self, scope: &Reserved, cost: &Cost, asked_at: u64) -> Result<bool, Failure> {
        let Reserved { key, rules, .. } = scope;
        let ledger = self.leases.ledger(scope, || self.store.id());
        let room = self.room(key, rules);
        let ask = {
            let (mut ledger, now) = (ledger.lock(), self.store.ticks.now());
            if ledger.can_take(rules, cost, now) {
                return Ok(true);
            }
            if !ledger.may_ask(rules, cost, now) {
                return Ok(false);
            }
            ledger.ask(Some(cost), &room, now)
        };
        self.lease((key, rules, &ledger), ask, asked_at).await
    }

    async fn renew_lease(self: Arc<Self>, key: CompactString, ledger: Arc<Mutex<Ledger>>) {
        let rules = Arc::clone(ledger.lock().rules());
        let (room, now) = (self.room(&key, &rules), self.store.ticks.now());
        let ask = {
            let mut ledger = ledger.lock();
            if !ledger.is_due(now) {
                return;
            }
            ledger.ask(None, &room, now)
        };
        if let Err(failure) = self.lease((&key, &rules, &ledger), ask, now).await {
            self.unheard(&failure);
        }
    }

    /// Asks the store: whether there is a lease now.
    async fn lease(
        &self,
        (key, rules, ledger): (&CompactString, &Arc<[Rule]>, &Mutex<Ledger>),
        ask: Ask,
        asked_at: u64,
    ) -> Result<bool, Failure> {
        let Ask { id, used, wanted } = ask;
        let (key, rules) = (key.clone(), Arc::clone(rules));
        let piece = Piece { key, rules, amounts: used, lease: Some(wanted) };
        let verb = Verb::Lease { ttl: micros(self.store.settings.lease) };
        let answer = self.store.call(verb, id, slice::from_ref(&piece), asked_at).await;
        let mut ledger = ledger.lock();
        let verdict = match answer {
            Ok(answer) => answer.verdict,
            Err(failure) => {
                ledger.unheard();
                return Err(failure);
            }
        };
        match verdict {
            Verdict::Leased(granted) => {
                ledger.granted(granted.first().map_or(&[], |amounts| &amounts[..]));
                return Ok(true);
            }
            Verdict::Refused { wait, .. } => ledger.refused(self.dry_until(wait)),
            Verdict::Unknown => ledger.unknown(),
            _ => ledger.unheard(),
        }
        Ok(false)
    }

    /// Until there is room again, but not for long: somebody may give it back.
    fn dry_until(&self, wait: InTime) -> u64 {
        let most = micros(self.store.settings.lease / DRY);
        let wait = if let InTime::In(wait) = wait { wait.min(most) } else { most };
        self.store.ticks.now().saturating_add(wait.saturating_mul(1_000))
    }

    /// What one process may ask for in advance, by what the store said last.
    fn room(&self, key: &str, rules: &Arc<[Rule]>) -> Room {
        let (store, now) = (&self.store, self.store.clock.now());
        let times = (store.ticks.now(), now);
        let buckets = store.views.lock().buckets((key, store.slot(key)), rules, times);
        let available = buckets.map(|buckets| {
            let level = rules.iter().zip(&buckets).map(|(rule, bucket)| bucket.level(rule, now));
            level.map(|level| level.available).collect()
        });
        Room { available, members: store.counters.members.now() }
    }
}

/// In a lease time, it is looked so often whether there is something to ask.
const LOOKS: u32 = 32;
const SHORTEST: Duration = Duration::from_millis(5);
/// For this part of a lease time at most, no lease of a key is asked for after there was no room.
const DRY: u32 = 8;
