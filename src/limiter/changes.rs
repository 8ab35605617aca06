use std::sync::Arc;

use compact_str::CompactString;

use super::attached::Shards;
use super::event::Event;
use super::limiter::Limiter;
use super::line::Wakers;
use super::reduced::is_rate;
use super::shard::{Core, Shard};
use super::sheet::{named, signed};
use super::slot::Slot;
use super::sync::atomic::Ordering;
use crate::engine::Rule;
use crate::quota::{Dimension, Window};

/// What has changed of one key since somebody last asked: for a store, and from there for the other
/// limiters that share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyChanges {
    /// The key.
    pub key: CompactString,
    /// Its buckets that have changed.
    pub buckets: Vec<BucketChanges>,
    /// Until when the key cools down, in nanoseconds since the epoch; 0 if it doesn't. `None` if
    /// that hasn't changed.
    pub cooling_until: Option<u64>,
    /// When the key was reset, in nanoseconds since the epoch: what was taken before is forgotten.
    pub reset_at: Option<u64>,
}

/// What has changed of one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketChanges {
    /// What the bucket counts.
    pub dimension: Dimension,
    /// Its window; a minute for requests in flight, for which it means nothing.
    pub window: Window,
    /// What was taken and when, in nanoseconds since the epoch, oldest first. Less than nothing was
    /// given back, of what had been taken at that time. What was taken at about the same time is one
    /// entry, of the latest of these times: so what is given back of it may be said of a time a little
    /// before, and belongs to the first entry that isn't before that.
    pub taken: Vec<(u64, i64)>,
    /// What requests in flight hold now, all of it: not what has changed.
    pub held: u64,
    /// How much comes back in a window, of a bucket that refills all the time; else 0. What was taken
    /// of such a bucket counts until it has come back, which may be long after its window.
    pub refill: u64,
}

impl KeyChanges {
    /// Nothing yet of a key.
    pub fn new(key: impl Into<CompactString>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }
}

impl BucketChanges {
    /// Changes of a bucket.
    pub fn new(dimension: Dimension, window: Window, taken: Vec<(u64, i64)>, held: u64) -> Self {
        Self { dimension, window, taken, held, refill: 0 }
    }
}

impl Limiter {
    pub(super) fn track(&self) {
        if !self.core.tracked.swap(true, Ordering::AcqRel) {
            let track = |shard: &Arc<Shard>| {
                let (mut keys, now) = shard.lock();
                keys.track(now);
            };
            self.shards.iter().for_each(track);
        }
    }

    pub(super) fn collect_changes(&self) -> Vec<KeyChanges> {
        self.shards.collect()
    }

    pub(super) fn apply_changes(&self, others: &[KeyChanges]) {
        self.track();
        for change in
            others.iter().filter(|change| self.find(&change.key).is_some() || change.is_any())
        {
            let applied = self.with(&change.key, |slot, now| slot.apply(change, &self.core, now));
            let Some((until, wakers)) = applied else { continue };
            wakers.ring();
            if let Some(until) = until {
                let (key, agent) = (change.key.clone(), Some(ANOTHER.into()));
                self.core.events.announce(|| Event::CoolingDown { key, until, agent });
            }
        }
    }
}

impl KeyChanges {
    /// Whether it is of interest to somebody who has nothing of the key.
    fn is_any(&self) -> bool {
        let takes = |bucket: &BucketChanges| bucket.taken.iter().any(|(_, amount)| *amount > 0);
        self.buckets.iter().any(|bucket| bucket.held > 0 || takes(bucket))
            || self.cooling_until.is_some_and(|until| until > 0)
    }
}

impl Shards {
    pub(super) fn collect(&self) -> Vec<KeyChanges> {
        let mut all = Vec::new();
        self.iter().for_each(|shard| shard.collect(&mut all));
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }
}

impl Shard {
    fn collect(&self, all: &mut Vec<KeyChanges>) {
        let listed = self.keys().docket.as_ref().map(|docket| docket.take());
        for part in listed.unwrap_or_default().chunks(AT_ONCE) {
            let mut keys = self.keys();
            all.extend(part.iter().filter_map(|&number| keys.slots[number].collect()));
        }
    }
}

impl Slot {
    /// Takes over what others did; says until when the key cools down, if that is longer now, and
    /// whom to wake.
    fn apply(&mut self, change: &KeyChanges, core: &Core, now: u64) -> (Option<u64>, Wakers) {
        if let Some(reset_at) = change.reset_at {
            self.reset_elsewhere(reset_at, core, now);
        }
        // What lies with a backend is known there.
        if core.backend.is_none() {
            change.buckets.iter().for_each(|bucket| self.take_over(bucket, now));
        }
        let until = change.cooling_until.and_then(|until| self.cool_down_elsewhere(until, now));
        let mut wakers = Wakers::default();
        if change.cooling_until.is_some() {
            // Some may not make their deadlines any more.
            wakers.wake(self.everyone());
        }
        wakers.wake(self.changed());
        self.tidy(now);
        (until, wakers)
    }

    fn take_over(&mut self, other: &BucketChanges, now: u64) {
        let Self { plan, buckets, line, .. } = self;
        let Some(ledger) = line.as_mut().and_then(|line| line.ledger.as_deref_mut()) else {
            return;
        };
        let of = |rule: &Rule| {
            let window = named(rule.dimension(), rule.limit().window());
            *rule.dimension() == other.dimension && window == named(&other.dimension, other.window)
        };
        let Some(index) = plan.rules.iter().position(of) else {
            // Should the key come to have such a limit, this is what others hold of it.
            ledger.loose(&other.dimension, other.window).others = other.held;
            return ledger.tidy();
        };
        let (rule, bucket) = (&plan.rules[index], &mut buckets[index]);
        for &(at, amount) in &other.taken {
            let amount = match u64::try_from(amount) {
                Ok(taken) => signed(ledger.unguessed(index, taken)),
                Err(_) => amount,
            };
            bucket.follow(rule, (at, amount), now);
        }
        bucket.hold(other.held.saturating_sub(ledger.sheets[index].others));
        bucket.drop_hold(ledger.sheets[index].others.saturating_sub(other.held));
        ledger.sheets[index].others = other.held;
    }

    /// Forgets what was used before a reset elsewhere. What isn't collected yet, nobody can tell.
    fn reset_elsewhere(&mut self, reset_at: u64, core: &Core, now: u64) {
        self.forget(now, |plan| Arc::new(plan.renewed(core.version())));
        let Self { plan, buckets, line, .. } = self;
        let Some(line) = line.as_deref_mut() else { return };
        let Some(ledger) = line.ledger.as_deref_mut() else { return };
        line.cooling_until = ledger.cooling.unwrap_or(0);
        ledger.guesses.clear();
        for ((rule, bucket), sheet) in plan.rules.iter().zip(buckets).zip(&mut ledger.sheets) {
            for &entry in sheet.forget_before(reset_at) {
                bucket.follow(rule, entry, now);
            }
        }
    }

    fn cool_down_elsewhere(&mut self, until: u64, now: u64) -> Option<u64> {
        if until == 0 {
            self.there().into_iter().for_each(|line| line.cooling_until = 0);
            return None;
        }
        self.cool_down(until, now).then_some(until)
    }

    /// Lets nobody in until then, if that is later than until when it does so anyway: the provider
    /// refused a request elsewhere. Its bucket is empty then, and so are ours.
    pub(super) fn cool_down(&mut self, until: u64, now: u64) -> bool {
        if until <= self.sends_at(now) {
            return false;
        }
        self.line().cooling_until = until;
        for (rule, bucket) in self.plan.rules.iter().zip(&mut self.buckets) {
            if is_rate(rule.limit()) {
                bucket.drain(rule, until);
            }
        }
        true
    }
}

/// Keys that are collected under one lock.
const AT_ONCE: usize = 256;

/// Who told of a cool-down that a store has brought.
const ANOTHER: &str = "another process";
