use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::quota::Key;

use super::key_state::KeyState;
use super::shared::Shared;
use crate::answer::stats::KeyStats;
use crate::backend::Backend;

/// The keys of a limiter that somebody wants to see, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busiest {
    /// The busiest first: those with most requests waiting, then those that cool down, then by the
    /// share of its fullest limit that is used or held; then by name.
    pub keys: Vec<(Key, KeyStats)>,
    /// The number of other keys.
    pub others: usize,
    /// The number of requests that wait, for all keys.
    pub waiting: usize,
}

impl Busiest {
    pub(super) fn of(shared: &Shared, most: usize) -> Self {
        let backend = shared.core.backend.as_ref();
        let mut search = Search { most, best: BinaryHeap::new(), seen: 0, waiting: 0 };
        shared.table.for_each(|entry| {
            let key = entry.lock();
            if !key.is_retired() {
                let busy = Busy::of(&entry.key, &key, backend);
                drop(key);
                search.see(busy, &entry.key);
            }
        });
        let named: Vec<_> = shared.core.quotas.read().named().cloned().collect();
        for key in named {
            if shared.key_ref(&key, None).find().is_none() {
                search.see(Busy::default(), &key);
            }
        }
        let Search { best, seen, waiting, .. } = search;
        let best = best.into_sorted_vec();
        let others = seen - best.len();
        let stats = |Reverse((_, Reverse(key))): Ranked| {
            let stats = shared.table.peek(&key, |key, state| state.stats(key, backend));
            (key, stats.unwrap_or_default())
        };
        Self { keys: best.into_iter().map(stats).collect(), others, waiting }
    }
}

/// The load of a key: the busier, the greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Busy {
    waiting: usize,
    cools_down: bool,
    /// Of its fullest limit, in 1/10,000.
    share: u64,
}

/// The least busy is the greatest, so that it is at hand in a heap; of those as busy the last by name.
type Ranked = Reverse<(Busy, Reverse<Key>)>;

struct Search {
    most: usize,
    best: BinaryHeap<Ranked>,
    seen: usize,
    waiting: usize,
}

impl Search {
    fn see(&mut self, busy: Busy, key: &Key) {
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
        let cools_down = state.cooling_until() > state.now();
        Self { waiting: state.waiting(), cools_down, share: share.unwrap_or(0) }
    }
}

fn share(used: u64, held: u64, limit: u64) -> u64 {
    let taken = u128::from(used) + u128::from(held);
    u64::try_from(taken * 10_000 / u128::from(limit.max(1))).unwrap_or(u64::MAX)
}
