use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Bucket, Rule, Saved};
use smallvec::SmallVec;

use paceline_limiter::quota::Key;

use super::known_uses::KnownUses;
use super::piece::Piece;
use super::script::{Id, KnownReservation, LeaseAnswer, Operation, Outcome, ServerTime, View};
use super::server_clock::ServerClock;

/// The last known state of each key, and of the servers' clocks.
#[derive(Debug, Default)]
pub(super) struct Views {
    keys: HashMap<Key, KnownKey>,
    /// By slot; a single entry if all keys are in one slot.
    clocks: HashMap<Key, ServerClock>,
}

/// The answer to a call, as far as it concerns one key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer<'a> {
    Done,
    Unknown,
    Refused,
    Lease(&'a LeaseAnswer),
}

impl<'a> Answer<'a> {
    /// Returns the answer for the part of a call with this index.
    pub(super) fn of(outcome: &'a Outcome, part: usize) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::Leases(answers) => answers.get(part).map_or(Self::Refused, Self::Lease),
            Outcome::Unknown => Self::Unknown,
            _ => Self::Refused,
        }
    }
}

#[derive(Debug)]
struct KnownKey {
    rules: Arc<[Rule]>,
    /// Without the times of use.
    view: View,
    uses: KnownUses,
    /// The reservations that the server holds for this process, by their responses.
    reservations: HashMap<Id, KnownReservation>,
}

impl Views {
    /// Returns the last known state of a key, for these rules.
    fn view(&self, key: &str, rules: &Arc<[Rule]>) -> Option<View> {
        let known = self.keys.get(key)?;
        if known.rules == *rules {
            let uses = known.uses.by_rule().to_vec();
            return Some(View { uses, ..known.view.clone() });
        }
        let (mut buckets, mut uses) = (SmallVec::new(), Vec::new());
        for rule in rules.iter() {
            let index = known.rules.iter().position(|old| old.counts_same_as(rule));
            buckets
                .push(index.and_then(|at| known.view.buckets.get(at).copied()).unwrap_or_default());
            let of_rule = index.and_then(|at| known.uses.by_rule().get(at).cloned());
            uses.push(of_rule.unwrap_or_default());
        }
        Some(View { buckets, uses, ..known.view.clone() })
    }

    /// Returns the last known state of a key, with the reservations of this process, to report it.
    pub(super) fn report(&self, key: &str, rules: &Arc<[Rule]>) -> Option<View> {
        let reservations = self.keys.get(key)?.reservations.values().cloned().collect();
        Some(View { reservations, ..self.view(key, rules)? })
    }

    /// Returns the last known state of a key without its amounts, which identifies the state.
    pub(super) fn identity(&self, key: &str) -> Option<View> {
        let view = &self.keys.get(key)?.view;
        Some(View { created_at: view.created_at, at: view.at, ..View::default() })
    }

    /// Returns whether the next call on a key should ask for the times of use.
    pub(super) fn wants_uses(&self, key: &str, rules: &[Rule], now: u64) -> bool {
        match self.keys.get(key) {
            Some(known) => known.uses.are_due(rules, now),
            None => KnownUses::default().are_due(rules, u64::MAX),
        }
    }

    /// Records the state in a response to a call that has taken these amounts. Responses may be
    /// reordered: an older one is ignored.
    pub(super) fn record(&mut self, key: &str, rules: &Arc<[Rule]>, mut view: View, taken: &[u64]) {
        if let Some(known) = self.keys.get_mut(key) {
            let is_same = known.view.created_at == view.created_at;
            if is_same && known.view.at > view.at {
                return;
            }
            if !is_same || known.rules != *rules {
                known.uses = KnownUses::default();
            }
            known.uses.record(rules, &mut view, taken);
            (known.rules, known.view) = (Arc::clone(rules), view);
            return;
        }
        if self.keys.len() >= MAX_KEYS {
            self.evict_half();
        }
        let mut uses = KnownUses::default();
        uses.record(rules, &mut view, taken);
        let (rules, reservations) = (Arc::clone(rules), HashMap::new());
        self.keys.insert(key.into(), KnownKey { rules, view, uses, reservations });
    }

    /// Records what a response says about the reservation of a call, or about the lease of a key. Returns whether
    /// the reservation had expired before its request was settled.
    pub(super) fn record_reservation(
        &mut self,
        operation: Operation,
        id: Id,
        piece: &Piece,
        time: u64,
        answer: Answer<'_>,
    ) -> bool {
        let Some(known) = self.keys.get_mut(&piece.key) else { return false };
        let new = |id, sent, ttl, call_number, amounts| KnownReservation {
            id,
            sent,
            renewed: time,
            ttl,
            call_number,
            rules: Arc::clone(&piece.rules),
            amounts,
        };
        match (operation, answer, &piece.lease) {
            (Operation::Lease { ttl }, Answer::Lease(answer), Some(lease)) => {
                let granted = match answer {
                    LeaseAnswer::Granted(granted) => &granted[..],
                    LeaseAnswer::Refused(_) => &[],
                    LeaseAnswer::Unknown => {
                        known.reservations.remove(&lease.id);
                        return false;
                    }
                };
                let granted = granted.iter().copied().chain(std::iter::repeat(0));
                let held = lease.inflight.iter().zip(granted);
                let held = held.map(|(in_flight, granted)| in_flight + granted).collect();
                let number = Some(lease.call_number);
                known.reservations.insert(lease.id, new(lease.id, time, ttl, number, held));
            }
            (Operation::Reserve { ttl, .. }, Answer::Done, _) => {
                let new = || new(id, time, ttl, None, piece.amounts.clone());
                known.reservations.entry(id).or_insert_with(new);
            }
            (Operation::Renew { ttl, .. }, Answer::Done, _) => {
                let new = || new(id, 0, ttl, None, piece.amounts.clone());
                known.reservations.entry(id).or_insert_with(new).renewed = time;
            }
            (Operation::Renew { .. }, Answer::Unknown, _)
            | (Operation::Settle { .. } | Operation::Release { .. } | Operation::Return, ..) => {
                let ended = known.reservations.remove(&id);
                let is_settled = matches!(operation, Operation::Settle { .. });
                return is_settled
                    && matches!(answer, Answer::Unknown)
                    && ended.is_some_and(|ended| time >= ended.renewed.saturating_add(ended.ttl));
            }
            _ => {}
        }
        false
    }

    /// Forgets a reservation whose end the server rejects; it will expire.
    pub(super) fn forget_reservation(&mut self, key: &str, id: Id) {
        if let Some(known) = self.keys.get_mut(key) {
            known.reservations.remove(&id);
        }
    }

    /// Returns a piece without amounts for each key with usage or reservations of this process.
    pub(super) fn used_keys(&self) -> Vec<Piece> {
        let is_used = |known: &&KnownKey| {
            !known.reservations.is_empty() || known.view.buckets.iter().any(|(used, _)| *used > 0)
        };
        let piece = |(key, KnownKey { rules, .. }): (&Key, &KnownKey)| Piece {
            key: key.clone(),
            rules: Arc::clone(rules),
            amounts: rules.iter().map(|_| 0).collect(),
            lease: None,
        };
        self.keys.iter().filter(|(_, known)| is_used(known)).map(piece).collect()
    }

    /// Returns the rules of the last call on a key.
    pub(super) fn rules(&self, key: &str) -> Arc<[Rule]> {
        self.keys.get(key).map_or_else(|| Arc::from([]), |known| Arc::clone(&known.rules))
    }

    /// Records the server time of a slot in the response to a call that was sent and received at
    /// these times. If the server's clock was set back, the last known states count as seen at that
    /// time, so that later responses replace them and later jumps apply to them.
    pub(super) fn record_time(
        &mut self,
        slot: &str,
        server: u64,
        sent: Timestamp,
        received: Timestamp,
    ) {
        if self.clocks.len() >= MAX_KEYS {
            self.clocks.clear();
        }
        if self.clocks.entry(slot.into()).or_default().record(server, sent, received) {
            let seen = |known: &mut KnownKey| known.view.at = known.view.at.min(server);
            match slot {
                "" => self.keys.values_mut().for_each(seen),
                slot => self.keys.get_mut(slot).into_iter().for_each(seen),
            }
        }
    }

    /// Returns the clock of the only slot.
    pub(super) fn clock(&mut self) -> &mut ServerClock {
        self.clocks.entry("".into()).or_default()
    }

    /// Returns the expected server time of a slot, and the changes by which the clock was set forward since
    /// any of these keys was last seen.
    pub(super) fn time(&self, slot: &str, pieces: &[Piece], own: Timestamp) -> ServerTime {
        let Some(clock) = self.clocks.get(slot) else { return ServerTime::default() };
        let mut jumps = &[][..];
        if !clock.jumps().is_empty() {
            let seen = |piece: &Piece| self.keys.get(&piece.key).map(|known| known.view.at);
            let missed = pieces.iter().map(|piece| clock.jumps_since(seen(piece)));
            jumps = missed.max_by_key(|jumps| jumps.len()).unwrap_or_default();
        }
        ServerTime { expected: clock.at(own), jumps: jumps.into() }
    }

    fn expected(&self, slot: &str, own: Timestamp) -> u64 {
        self.clocks.get(slot).map_or(0, |clock| clock.at(own))
    }

    /// Returns the time that has passed since the last known state of a key.
    pub(super) fn age(&self, key: &str, slot: &str, own: Timestamp) -> Option<Duration> {
        let view = &self.keys.get(key)?.view;
        Some(Duration::from_micros(self.expected(slot, own).saturating_sub(view.at)))
    }

    /// Returns the last known buckets of a key, at time `now` of the limiter's clock, under the
    /// assumption that held amounts are still held.
    pub(super) fn buckets(
        &self,
        key: &str,
        slot: &str,
        rules: &Arc<[Rule]>,
        own: Timestamp,
        now: Timestamp,
    ) -> Option<Vec<Bucket>> {
        let view = self.view(key, rules).filter(|view| view.buckets.len() == rules.len())?;
        let passed = self.expected(slot, own).saturating_sub(view.at);
        let at = now - Duration::from_micros(passed);
        let buckets = rules.iter().zip(&view.buckets).map(|(rule, &(used, held))| {
            let taken = if used > 0 { vec![(at, used)] } else { Vec::new() };
            let mut bucket = Bucket::new(rule);
            bucket.absorb(rule, &Saved { taken, held: 0 }, now);
            bucket.hold(held);
            bucket
        });
        Some(buckets.collect())
    }

    /// Evicts the least recently seen half of the keys.
    #[cold]
    fn evict_half(&mut self) {
        let mut times: Vec<u64> = self.keys.values().map(|known| known.view.at).collect();
        let middle = times.len() / 2;
        let (_, &mut middle, _) = times.select_nth_unstable(middle);
        self.keys.retain(|_, known| known.view.at > middle || !known.reservations.is_empty());
    }
}

const MAX_KEYS: usize = 100_000;
