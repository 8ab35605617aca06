use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use compact_str::CompactString;

use super::limiter::Limiter;
use super::shard::{Core, Shard};
use super::slot::Slot;
use super::stats::KeyStats;

/// The keys of a limiter that somebody wants to see, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busiest {
    /// The busiest first: those with most requests waiting, then those that cool down, then by the
    /// share of its fullest limit that is used or held; then by name.
    pub keys: Vec<(CompactString, KeyStats)>,
    /// How many keys there are besides.
    pub others: usize,
    /// How many requests wait, for whatever key.
    pub waiting: usize,
}

impl Limiter {
    pub(super) fn busiest(&self, most: usize) -> Busiest {
        let mut search = Search { most, best: BinaryHeap::new(), seen: 0, waiting: 0 };
        for shard in self.shards.iter() {
            search.walk(shard, &self.core);
        }
        let named: Vec<_> = self.core.quotas.read().named().cloned().collect();
        for key in named {
            if self.name(key.clone()).find().is_none() {
                search.see(Busy::default(), &key);
            }
        }
        let Search { best, seen, waiting, .. } = search;
        let best = best.into_sorted_vec();
        let others = seen - best.len();
        let stats = |Reverse((_, Reverse(key))): Ranked| (key.clone(), self.stats(&key));
        Busiest { keys: best.into_iter().map(stats).collect(), others, waiting }
    }
}

/// How busy a key is: the more, the greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Busy {
    waiting: usize,
    cools_down: bool,
    /// Of its fullest limit, in 1/10,000.
    share: u64,
}

/// The least busy is the greatest, so that it is at hand in a heap; of those as busy the last by name.
type Ranked = Reverse<(Busy, Reverse<CompactString>)>;

struct Search {
    most: usize,
    best: BinaryHeap<Ranked>,
    seen: usize,
    waiting: usize,
}

impl Search {
    /// Looks at the keys of a shard, a few at a time: others wait for its lock.
    fn walk(&mut self, shard: &Arc<Shard>, core: &Core) {
        let mut next = 0;
        loop {
            let (keys, now) = shard.lock();
            let end = keys.numbers().end.min(next + AT_ONCE);
            if next >= end {
                return;
            }
            for number in next..end {
                let slot = &keys.slots[number];
                if slot.is_taken() && !slot.is_moved() {
                    self.see(Busy::of(slot, now, core), &slot.key);
                }
            }
            next = end;
        }
    }

    fn see(&mut self, busy: Busy, key: &CompactString) {
        self.seen += 1;
        self.waiting += busy.waiting;
        if self.best.len() >= self.most {
            let Some(Reverse((least, Reverse(last)))) = self.best.peek() else { return };
            if (busy, Reverse(key)) <= (*least, Reverse(last)) {
                return;
            }
            self.best.pop();
        }
        self.best.push(Reverse((busy, Reverse(key.clone()))));
    }
}

impl Busy {
    fn of(slot: &Slot, now: u64, core: &Core) -> Self {
        let cools_down = slot.line.as_ref().is_some_and(|line| line.cooling_until > now);
        let share = match core.backend {
            Some(_) => {
                let limits = slot.stats(now, core).limits.into_iter();
                limits.map(|limit| share(limit.used, limit.held, limit.limit)).max()
            }
            None => {
                let levels = slot.plan.rules.iter().zip(&slot.buckets);
                let share = |(rule, bucket): (&crate::engine::Rule, &crate::engine::Bucket)| {
                    let level = bucket.level(rule, now);
                    share(level.used, level.held, rule.limit().amount())
                };
                levels.map(share).max()
            }
        };
        Self { waiting: slot.waiting(), cools_down, share: share.unwrap_or(0) }
    }
}

fn share(used: u64, held: u64, limit: u64) -> u64 {
    let taken = u128::from(used) + u128::from(held);
    u64::try_from(taken * 10_000 / u128::from(limit.max(1))).unwrap_or(u64::MAX)
}

/// Keys that are looked at under one lock.
const AT_ONCE: u32 = 64;
