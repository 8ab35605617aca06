use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::quota::Key;

use super::key_state::KeyState;
use super::shared::Shared;
use crate::answer::stats::KeyStats;
use crate::backend::Backend;

/// The busiest keys of a limiter, and the number of the others.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Busiest {
    /// The keys, busiest first: sorted by the number of waiting requests, then keys that cool down, then by
    /// the used and held share of their fullest limit, then by name.
    pub keys: Vec<(Key, KeyStats)>,
    /// The number of other keys.
    pub others: usize,
    /// The number of waiting requests of all keys.
    pub waiting: usize,
}

impl Busiest {
    pub(super) fn of(shared: &Shared, most: usize) -> Self {
        let backend = shared.core.backend.as_ref();
        let mut search = Search { most, best: BinaryHeap::new(), count: 0, waiting: 0 };
        shared.table.for_each(|entry| {
            let key = entry.lock();
            if !key.is_retired() {
                let load = KeyLoad::of(&entry.key, &key, backend);
                drop(key);
                search.add(load, &entry.key);
            }
        });
        let named: Vec<_> = shared.core.quotas.read().named().cloned().collect();
        for key in named {
            if shared.key_ref(&key, None).find().is_none() {
                search.add(KeyLoad::default(), &key);
            }
        }
        let Search { best, count, waiting, .. } = search;
        let best = best.into_sorted_vec();
        let others = count - best.len();
        let stats = |Reverse((_, Reverse(key))): Ranked| {
            let stats = shared.table.peek(&key, |key, state| state.stats(key, backend));
            (key, stats.unwrap_or_default())
        };
        Self { keys: best.into_iter().map(stats).collect(), others, waiting }
    }
}

/// The load of a key. Busier keys are greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct KeyLoad {
    waiting: usize,
    is_cooling_down: bool,
    /// The used and held share of its fullest limit, in 1/10,000.
    share: u64,
}

/// A key in the heap, whose top is the least busy key; of equally busy keys, the last by name.
type Ranked = Reverse<(KeyLoad, Reverse<Key>)>;

/// A search for the busiest keys.
struct Search {
    most: usize,
    best: BinaryHeap<Ranked>,
    /// The number of all keys.
    count: usize,
    waiting: usize,
}

impl Search {
    fn add(&mut self, load: KeyLoad, key: &Key) {
        self.count += 1;
        self.waiting += load.waiting;
        if self.best.len() >= self.most {
            let Some(Reverse((least, Reverse(last)))) = self.best.peek() else { return };
            if (load, Reverse(key)) <= (*least, Reverse(last)) {
                return;
            }
            self.best.pop();
        }
        self.best.push(Reverse((load, Reverse(key.clone()))));
    }
}

impl KeyLoad {
    fn of(key: &str, state: &KeyState, backend: Option<&Arc<dyn Backend>>) -> Self {
        let share = match backend {
            Some(_) => {
                let limits = state.stats(key, backend).limits.into_iter();
                limits.map(|limit| share(limit.used, limit.held, limit.limit)).max()
            }
            None => {
                let levels = state.levels();
                levels.map(|(amount, level)| share(level.used, level.held, amount)).max()
            }
        };
        let is_cooling_down = state.cooling_until() > state.now();
        Self { waiting: state.waiting(), is_cooling_down, share: share.unwrap_or(0) }
    }
}

fn share(used: u64, held: u64, limit: u64) -> u64 {
    let taken = u128::from(used) + u128::from(held);
    u64::try_from(taken * 10_000 / u128::from(limit.max(1))).unwrap_or(u64::MAX)
}
