use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use paceline::Timestamp;
use paceline::limiter::Limiter;
use paceline_limiter::seam;

/// A map whose entries expire at times of the limiter's clock.
///
/// It has no clock and no lock, and does not remove entries by itself: its owner removes them in a task
/// that runs [`run`].
#[derive(Debug)]
pub(super) struct ExpiryMap<K, V> {
    entries: HashMap<K, (Timestamp, V)>,
    /// Sorted by expiry time.
    due: BTreeSet<(Timestamp, K)>,
}

impl<K: Copy + Eq + Hash + Ord, V> ExpiryMap<K, V> {
    pub(super) fn new() -> Self {
        Self { entries: HashMap::new(), due: BTreeSet::new() }
    }

    /// Returns the number of entries, including expired ones.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Inserts an entry, and replaces one with the same id. Returns true if it is the next to expire.
    pub(super) fn insert(&mut self, id: K, until: Timestamp, value: V) -> bool {
        if let Some((before, _)) = self.entries.insert(id, (until, value)) {
            self.due.remove(&(before, id));
        }
        self.due.insert((until, id));
        self.due.first() == Some(&(until, id))
    }

    pub(super) fn get(&self, id: K) -> Option<&V> {
        self.entries.get(&id).map(|(_, value)| value)
    }

    /// Removes an entry, and returns it with its expiry time.
    pub(super) fn remove(&mut self, id: K) -> Option<(Timestamp, V)> {
        let (until, value) = self.entries.remove(&id)?;
        self.due.remove(&(until, id));
        Some((until, value))
    }

    /// Removes at most [`BATCH`] expired entries, so that the lock is not held for long. Returns them with
    /// their expiry times.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<(K, Timestamp, V)> {
        let mut expired = Vec::new();
        while expired.len() < BATCH
            && let Some(&(_, id)) = self.due.first().filter(|(until, _)| *until <= now)
        {
            expired.extend(self.remove(id).map(|(until, value)| (id, until, value)));
        }
        expired
    }

    /// Returns the next expiry time.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.due.first().map(|(until, _)| *until)
    }

    /// Removes all entries.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        self.due.clear();
        std::mem::take(&mut self.entries).into_iter().map(|(id, (_, value))| (id, value))
    }
}

/// Expires entries at their times until `stopped` is cancelled.
///
/// `expire` ends expired entries and returns the next expiry time, which is not in the future if more
/// entries have expired already. `earlier` signals that the next expiry time became earlier.
pub(super) async fn run(
    limiter: &Limiter,
    earlier: &Notify,
    stopped: &CancellationToken,
    expire: impl Fn(Timestamp) -> Option<Timestamp>,
) {
    loop {
        let now = limiter.now();
        let next = expire(now);
        let due = async {
            match next {
                // Let other tasks take the lock.
                Some(time) if time <= now => tokio::task::yield_now().await,
                Some(time) => seam::sleep_until(limiter, time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopped.cancelled() => return,
            () = earlier.notified() => {}
            () = due => {}
        }
    }
}

/// The maximum number of entries that expire under one lock.
pub(super) const BATCH: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn sizes<V>(expiring: &ExpiryMap<u64, V>) -> (usize, usize) {
        (expiring.entries.len(), expiring.due.len())
    }

    #[test]
    fn removed_entry_is_dropped_from_both_indexes() {
        let mut expiring = ExpiryMap::new();
        for id in 0..1_000 {
            expiring.insert(id, at(7), 7);
            expiring.insert(id, at(100 + id % 3), id);
        }
        assert!((0..500).all(|id| expiring.remove(id) == Some((at(100 + id % 3), id))));
        assert_eq!((expiring.remove(0), sizes(&expiring)), (None, (500, 500)));
        assert!(
            expiring.expire(at(100)).iter().all(|(id, until, _)| (id % 3, *until) == (0, at(100)))
        );
        assert_eq!(expiring.next_expiry(), Some(at(101)));
        assert_eq!((expiring.drain().count(), sizes(&expiring)), (333, (0, 0)));
    }

    #[test]
    fn insert_reports_the_next_entry_to_expire() {
        let mut expiring = ExpiryMap::new();
        assert!(expiring.insert(1, at(30), ()));
        assert!(expiring.insert(2, at(10), ()));
        assert!(!expiring.insert(3, at(20), ()));
        assert_eq!((expiring.expire(at(9)), expiring.next_expiry()), (vec![], Some(at(10))));
        assert_eq!(expiring.expire(at(20)), [(2, at(10), ()), (3, at(20), ())]);
        assert_eq!(expiring.next_expiry(), Some(at(30)));
    }
}
