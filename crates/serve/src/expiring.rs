use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use tollgate::Timestamp;
use tollgate::limiter::Limiter;

/// What is held by its id, each until its time by the limiter's clock.
///
/// It has no clock and no lock, and ends nothing: whoever it belongs to does, with the task that is
/// [`run`].
#[derive(Debug)]
pub(super) struct Expiring<K, V> {
    held: HashMap<K, (Timestamp, V)>,
    /// By time.
    due: BTreeSet<(Timestamp, K)>,
}

impl<K: Copy + Eq + Hash + Ord, V> Expiring<K, V> {
    pub(super) fn new() -> Self {
        Self { held: HashMap::new(), due: BTreeSet::new() }
    }

    /// How many are held, those whose time has come included.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Holds one until this time, in place of any that has its id. Says whether it is the first whose
    /// time comes.
    pub(super) fn insert(&mut self, id: K, until: Timestamp, value: V) -> bool {
        if let Some((before, _)) = self.held.insert(id, (until, value)) {
            self.due.remove(&(before, id));
        }
        self.due.insert((until, id));
        self.due.first() == Some(&(until, id))
    }

    pub(super) fn get(&self, id: K) -> Option<&V> {
        self.held.get(&id).map(|(_, value)| value)
    }

    /// Hands one out, with the time until which it was held.
    pub(super) fn remove(&mut self, id: K) -> Option<(Timestamp, V)> {
        let (until, value) = self.held.remove(&id)?;
        self.due.remove(&(until, id));
        Some((until, value))
    }

    /// Hands out those whose time has come, with that; no more than so many at once, so that nobody
    /// waits for a lock while thousands end.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<(K, Timestamp, V)> {
        let mut over = Vec::new();
        while over.len() < MOST_AT_ONCE
            && let Some(&(_, id)) = self.due.first().filter(|(until, _)| *until <= now)
        {
            over.extend(self.remove(id).map(|(until, value)| (id, until, value)));
        }
        over
    }

    /// When the time of the next comes.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(until, _)| *until)
    }

    /// Hands all out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        self.due.clear();
        std::mem::take(&mut self.held).into_iter().map(|(id, (_, value))| (id, value))
    }
}

/// Ends each at its time, until `stopped`. `expire` ends those whose time has come, and says when that
/// of the next will: by now, if there are more. `nearer` tells that the next time is nearer than it was.
pub(super) async fn run(
    limiter: &Limiter,
    nearer: &Notify,
    stopped: &CancellationToken,
    expire: impl Fn(Timestamp) -> Option<Timestamp>,
) {
    loop {
        let now = limiter.now();
        let next = expire(now);
        let due = async {
            match next {
                // Others come first.
                Some(time) if time <= now => tokio::task::yield_now().await,
                Some(time) => limiter.sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopped.cancelled() => return,
            () = nearer.notified() => {}
            () = due => {}
        }
    }
}

/// How many end under one lock.
pub(super) const MOST_AT_ONCE: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn sizes<V>(expiring: &Expiring<u64, V>) -> (usize, usize) {
        (expiring.held.len(), expiring.due.len())
    }

    #[test]
    fn nothing_is_left_of_one_that_was_handed_out() {
        let mut expiring = Expiring::new();
        for id in 0..1_000 {
            expiring.insert(id, at(7), 7);
            expiring.insert(id, at(100 + id % 3), id);
        }
        assert!((0..500).all(|id| expiring.remove(id) == Some((at(100 + id % 3), id))));
        assert_eq!((expiring.remove(0), sizes(&expiring)), (None, (500, 500)));
        assert!(
            expiring.expire(at(100)).iter().all(|(id, until, _)| (id % 3, *until) == (0, at(100)))
        );
        assert_eq!(expiring.next(), Some(at(101)));
        assert_eq!((expiring.drain().count(), sizes(&expiring)), (333, (0, 0)));
    }

    #[test]
    fn the_first_whose_time_comes_is_told_of_and_goes_first() {
        let mut expiring = Expiring::new();
        assert!(expiring.insert(1, at(30), ()));
        assert!(expiring.insert(2, at(10), ()));
        assert!(!expiring.insert(3, at(20), ()));
        assert_eq!((expiring.expire(at(9)), expiring.next()), (vec![], Some(at(10))));
        assert_eq!(expiring.expire(at(20)), [(2, at(10), ()), (3, at(20), ())]);
        assert_eq!(expiring.next(), Some(at(30)));
    }
}
