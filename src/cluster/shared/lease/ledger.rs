use std::sync::Arc;

use smallvec::SmallVec;

use super::ask::{Ask, Room};
use super::row::Row;
use super::taken::Taken;
use crate::cluster::shared::script::{Amounts, Id, Wanted};
use crate::engine::{self, Bucket, Rule};
use crate::quota::{Cost, Dimension};

/// What a process holds of one key's buckets, and what it has done with it.
///
/// A request goes through [`try_take`](Self::try_take) and one of [`settle`](Self::settle) and
/// [`release`](Self::release). In between and beside, the server is asked: [`ask`](Self::ask), then
/// one of [`granted`](Self::granted), [`refused`](Self::refused), [`unknown`](Self::unknown) and
/// [`unheard`](Self::unheard), one question at a time. Times are nanoseconds of this process's own
/// clock.
#[derive(Debug)]
pub(in crate::cluster::shared) struct Ledger {
    rules: Arc<[Rule]>,
    rows: SmallVec<[Row; 3]>,
    /// Fresh buckets that say when a window is closed; of rules that are always open none.
    gates: Vec<Bucket>,
    /// For how long the server holds a lease.
    time: u64,
    /// The name of the first lease of this ledger; that of a later one has its number in it.
    id: Id,
    lease: u32,
    /// The number of the last question, and of the first that told what is being told.
    turn: u32,
    told: u32,
    /// Whether the server has answered that question or one after it.
    heard: bool,
    asking: bool,
    asked_at: u64,
    /// Nothing is admitted from then on.
    until: u64,
    used_at: u64,
    /// The server had no room when it was last asked: it isn't asked for a lease before then.
    dry_until: u64,
}

impl Ledger {
    /// Nothing is held yet. `time` is the lease time; the last 4 bytes of `id` are the ledger's to
    /// use, for the number of the lease, of which the first is given too.
    pub(in crate::cluster::shared) fn new(
        rules: Arc<[Rule]>,
        (id, lease): (Id, u32),
        time: u64,
    ) -> Self {
        let rows = rules.iter().map(|_| Row::default()).collect();
        let gates = if rules.iter().all(Rule::refills) {
            Vec::new()
        } else {
            rules.iter().map(Bucket::new).collect()
        };
        Self {
            rules,
            rows,
            gates,
            time,
            id,
            lease,
            turn: 0,
            told: 0,
            heard: true,
            asking: false,
            asked_at: 0,
            until: 0,
            used_at: 0,
            dry_until: 0,
        }
    }

    /// Whether requests under these rules can be decided out of a lease. What counts from its first
    /// use on has to be known when it is used, and so has what is in flight.
    pub(in crate::cluster::shared) fn serves(rules: &[Rule]) -> bool {
        let exact = |rule: &Rule| rule.is_anchored() || *rule.dimension() == Dimension::Concurrency;
        !rules.is_empty() && !rules.iter().any(exact)
    }

    pub(in crate::cluster::shared) fn rules(&self) -> &Arc<[Rule]> {
        &self.rules
    }

    /// Takes a cost out of what is held: of all buckets or of none. `None`: it isn't there, or not any
    /// more, or the window is closed.
    #[inline]
    pub(in crate::cluster::shared) fn try_take(
        &mut self,
        rules: &Arc<[Rule]>,
        cost: &Cost,
        now: u64,
    ) -> Option<Taken> {
        if !self.can_take(rules, cost, now) {
            return None;
        }
        for (rule, row) in self.rules.iter().zip(&mut self.rows) {
            let amount = rule.amount(cost);
            let of = if rule.holds() { &mut row.flying } else { &mut row.spent };
            *of = of.saturating_add(amount);
            row.demand.add(amount);
        }
        self.used_at = self.used_at.max(now);
        Some(Taken { lease: self.lease, told: self.told })
    }

    /// Whether it can take it.
    #[inline]
    pub(in crate::cluster::shared) fn can_take(
        &self,
        rules: &Arc<[Rule]>,
        cost: &Cost,
        now: u64,
    ) -> bool {
        now < self.until && self.is_under(rules) && self.has(cost) && self.is_open(cost, now)
    }

    /// Undoes a taking of this moment: another key of the request had no room.
    pub(in crate::cluster::shared) fn untake(&mut self, taken: Taken, cost: &Cost) {
        self.release(taken, cost);
        for (rule, row) in self.rules.iter().zip(&mut self.rows) {
            row.demand.sub(rule.amount(cost));
        }
    }

    /// A request ended that had reserved `reserved`, and took `actual`. More than was reserved is told
    /// as it is. Less is free again, unless it was charged when it was sent and is told already.
    pub(in crate::cluster::shared) fn settle(
        &mut self,
        taken: Taken,
        reserved: &Cost,
        actual: &Cost,
    ) {
        let (there, untold) = (taken.lease == self.lease, taken.told == self.told);
        for (rule, row) in self.rules.iter().zip(&mut self.rows) {
            let (reserved, actual) = (rule.amount(reserved), rule.amount(actual));
            let more = match (rule.holds(), there) {
                (true, true) => {
                    row.flying = row.flying.saturating_sub(reserved);
                    actual
                }
                (false, true) if untold => {
                    row.spent = row.spent.saturating_sub(reserved);
                    actual
                }
                // The server has taken what was reserved.
                _ => actual.saturating_sub(reserved),
            };
            row.spent = row.spent.saturating_add(more);
        }
    }

    /// A request that never left.
    pub(in crate::cluster::shared) fn release(&mut self, taken: Taken, reserved: &Cost) {
        let nothing = Cost::new().requests(0);
        self.settle(taken, reserved, &nothing);
    }

    /// What was used and not told is forgotten; what is held stays held.
    pub(in crate::cluster::shared) fn reset(&mut self) {
        self.rows.iter_mut().for_each(|row| row.spent = 0);
    }

    /// Whether the server is to be asked now, though nobody waits for it.
    pub(in crate::cluster::shared) fn is_due(&self, now: u64) -> bool {
        if self.asking || self.is_empty() {
            return false;
        }
        let passed = now.saturating_sub(self.asked_at);
        passed >= self.time / RENEWALS || (passed >= self.time / OFTEN && self.is_half_empty())
    }

    /// Whether a lease is worth asking for on behalf of a request that can't be taken.
    pub(in crate::cluster::shared) fn may_ask(
        &self,
        rules: &Arc<[Rule]>,
        cost: &Cost,
        now: u64,
    ) -> bool {
        let fits = |rule: &Rule| rule.amount(cost) <= rule.capacity();
        let free = !self.asking && now >= self.dry_until;
        free && self.is_under(rules) && self.rules.iter().all(fits)
    }

    /// Nothing is held, and there is nothing to tell.
    pub(in crate::cluster::shared) fn is_empty(&self) -> bool {
        self.rows.iter().all(Row::is_empty)
    }

    /// Nobody needs it any more.
    pub(in crate::cluster::shared) fn is_over(&self, now: u64) -> bool {
        let rested = now.saturating_sub(self.used_at.max(self.asked_at)) >= self.time;
        rested && !self.asking && self.is_empty()
    }

    /// For each rule, what was used and isn't known to be heard, and what is free.
    pub(in crate::cluster::shared) fn figures(&self, now: u64) -> Vec<(u64, u64)> {
        let free = |row: &Row| if now < self.until { row.free() } else { 0 };
        self.rows.iter().map(|row| (row.spent.saturating_add(row.telling), free(row))).collect()
    }

    /// What to ask the server: to hold what is wanted from now on, and what was used. With a `waiting`
    /// request at least that, or nothing: what is free is given back first, so that it doesn't stand in
    /// the request's own way, and can't be taken until there is an answer. Not to be called while
    /// another question is open.
    pub(in crate::cluster::shared) fn ask(
        &mut self,
        waiting: Option<&Cost>,
        room: &Room,
        now: u64,
    ) -> Ask {
        self.turn += 1;
        if self.heard {
            self.told = self.turn;
        }
        let idle = waiting.is_none() && now.saturating_sub(self.used_at) >= self.time;
        let mut ask = Ask { id: self.id(), used: Amounts::new(), wanted: Wanted::default() };
        (ask.wanted.turn, ask.wanted.told) = (self.turn, self.told);
        for (index, (rule, row)) in self.rules.iter().zip(&mut self.rows).enumerate() {
            if self.heard {
                row.telling = std::mem::take(&mut row.spent);
            }
            let free = row.free();
            let kept = row.keep(waiting.is_none() && !idle);
            let least = waiting.map_or(0, |cost| rule.amount(cost));
            let target = row.demand.per_lease(self.time, now).max(least.saturating_mul(2));
            let part = room.part(index, rule.capacity());
            let wanted = match waiting {
                _ if idle => 0,
                Some(_) => target.min(part.saturating_add(free)).max(least),
                None => target.saturating_sub(free).min(part),
            };
            ask.used.push(row.telling);
            ask.wanted.inflight.push(kept);
            ask.wanted.least.push(least);
            ask.wanted.wanted.push(wanted);
        }
        (self.heard, self.asking, self.asked_at) = (false, true, now);
        ask
    }

    /// The server holds so much more than what was kept.
    pub(in crate::cluster::shared) fn granted(&mut self, granted: &[u64]) {
        for (index, row) in self.rows.iter_mut().enumerate() {
            row.hear(granted.get(index).copied().unwrap_or(0));
        }
        (self.heard, self.asking) = (true, false);
        // A sixteenth earlier: clocks don't run alike.
        self.until = self.asked_at.saturating_add(self.time - self.time / DRIFT);
    }

    /// The server had too little for the request that waited: it holds what was kept, and has taken
    /// what was told. Before `until` a lease isn't asked for again.
    pub(in crate::cluster::shared) fn refused(&mut self, until: u64) {
        self.granted(&[]);
        self.dry_until = until;
    }

    /// The server no longer has this lease: it has counted as used what it held.
    pub(in crate::cluster::shared) fn unknown(&mut self) {
        self.rows.iter_mut().for_each(Row::lapse);
        self.forget_lease();
    }

    /// There was no answer: whether the server has heard it isn't known. The next question tells the
    /// same once more.
    pub(in crate::cluster::shared) fn unheard(&mut self) {
        self.asking = false;
    }

    /// The end: what was used, with what is in flight as it was reserved. Nothing is held any more.
    pub(in crate::cluster::shared) fn close(&mut self) -> Ask {
        self.turn += 1;
        let mut ask = Ask { id: self.id(), used: Amounts::new(), wanted: Wanted::default() };
        // Rather told twice than not at all.
        (ask.wanted.turn, ask.wanted.told) = (self.turn, self.turn);
        for row in &mut self.rows {
            ask.used.push(row.telling.saturating_add(row.bound()));
            *row = Row::default();
        }
        self.forget_lease();
        ask
    }

    /// Whether these are the rules that the lease was taken by. Under others it isn't used any more, and
    /// so given back.
    #[inline]
    fn is_under(&self, rules: &Arc<[Rule]>) -> bool {
        Arc::ptr_eq(&self.rules, rules) || self.rules == *rules
    }

    #[inline]
    fn has(&self, cost: &Cost) -> bool {
        self.rules.iter().zip(&self.rows).all(|(rule, row)| rule.amount(cost) <= row.free())
    }

    #[inline]
    fn is_open(&self, cost: &Cost, now: u64) -> bool {
        self.gates.is_empty() || engine::fits(&self.rules, &self.gates, cost, now)
    }

    fn is_half_empty(&self) -> bool {
        self.rows.iter().any(|row| row.base > 0 && row.free() <= row.base / 2)
    }

    fn forget_lease(&mut self) {
        self.lease = self.lease.wrapping_add(1);
        (self.turn, self.told, self.heard, self.asking, self.until) = (0, 0, true, false, 0);
    }

    fn id(&self) -> Id {
        let mut id = self.id;
        id.0[12..].copy_from_slice(&self.lease.to_be_bytes());
        id
    }
}

/// A lease is renewed so many times in its time.
const RENEWALS: u64 = 3;

/// At most so often in its time because it is half empty.
const OFTEN: u64 = 16;

/// By this part of its time a lease ends earlier here than on the server.
const DRIFT: u64 = 16;
