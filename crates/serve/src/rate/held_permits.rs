use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::expiry_map::{self, ExpiryMap};
use paceline::Timestamp;
use paceline::limiter::{Limiter, Permit};

/// The permits of grants by number, each held until its expiry. A single task ends all of them.
pub(super) struct HeldPermits {
    table: Mutex<Table>,
    max: usize,
    /// Signals that the next expiry time became earlier.
    earlier: Notify,
}

struct Table {
    permits: ExpiryMap<u64, Permit>,
    is_closed: bool,
}

impl HeldPermits {
    /// Creates a table of at most `max` permits.
    pub(super) fn new(max: usize) -> Self {
        let table = Table { permits: ExpiryMap::new(), is_closed: false };
        Self { table: Mutex::new(table), max, earlier: Notify::new() }
    }

    /// Holds a permit until this time.
    ///
    /// # Errors
    /// Returns the permit if the maximum is reached or the server has stopped.
    pub(super) fn insert(
        &self,
        number: u64,
        until: Timestamp,
        permit: Permit,
    ) -> Result<(), Permit> {
        let mut table = self.table.lock();
        if table.is_closed || table.permits.len() >= self.max {
            return Err(permit);
        }
        let first = table.permits.insert(number, until, permit);
        drop(table);
        if first {
            self.earlier.notify_one();
        }
        Ok(())
    }

    /// Removes a permit that has not expired.
    pub(super) fn remove(&self, number: u64, now: Timestamp) -> Option<Permit> {
        let (until, permit) = self.table.lock().permits.remove(number)?;
        (now < until).then_some(permit)
    }

    /// Ends expired permits, and returns the next expiry time.
    fn expire(&self, now: Timestamp) -> Option<Timestamp> {
        let mut table = self.table.lock();
        let (expired, next) = (table.permits.expire(now), table.permits.next_expiry());
        drop(table);
        // Dropped permits keep their charge, and end their request in flight. That wakes waiters, so it
        // is done outside the lock.
        drop(expired);
        next
    }

    /// Ends each permit at its time, and all of them when the server stops.
    pub(super) async fn run(self: Arc<Self>, limiter: Limiter, stopping: CancellationToken) {
        expiry_map::run(&limiter, &self.earlier, &stopping, |now| self.expire(now)).await;
        let mut table = self.table.lock();
        table.is_closed = true;
        let all = table.permits.drain();
        drop(table);
        drop(all);
    }
}

impl fmt::Debug for HeldPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permits = self.table.lock().permits.len();
        f.debug_struct("HeldPermits").field("permits", &permits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use paceline::limiter::ManualClock;
    use paceline::quota::{Cost, Quota};

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn limiter() -> (Limiter, ManualClock) {
        let clock = ManualClock::new();
        let builder = Limiter::builder().quota("k", Quota::new().concurrency(100));
        (builder.clock(clock.clone()).build().unwrap(), clock)
    }

    fn permit(limiter: &Limiter) -> Permit {
        limiter.try_acquire("k", &Cost::new()).unwrap()
    }

    fn len(held: &HeldPermits) -> usize {
        held.table.lock().permits.len()
    }

    #[test]
    fn permit_is_removed_once_and_before_expiry() {
        let (held, (limiter, _clock)) = (HeldPermits::new(9), limiter());
        for number in 0..2 {
            held.insert(number, at(100), permit(&limiter)).unwrap();
        }
        assert!(held.remove(0, at(99)).is_some());
        assert!(held.remove(0, at(99)).is_none());
        assert!(held.remove(1, at(100)).is_none());
        assert_eq!(limiter.stats("k").limits[0].held, 0);
    }

    #[test]
    fn removed_permit_frees_capacity() {
        let (held, (limiter, _clock)) = (HeldPermits::new(1), limiter());
        for number in 0..1000 {
            held.insert(number, at(100), permit(&limiter)).unwrap();
            assert!(
                held.insert(1000, at(100), permit(&limiter)).is_err(),
                "the maximum is reached"
            );
            assert!(held.remove(number, at(0)).is_some());
        }
        assert_eq!(len(&held), 0);
    }

    #[tokio::test]
    async fn task_ends_permits_at_expiry_and_all_at_shutdown() {
        let (held, (limiter, clock)) = (Arc::new(HeldPermits::new(9)), limiter());
        let stopping = CancellationToken::new();
        let task = tokio::spawn(Arc::clone(&held).run(limiter.clone(), stopping.clone()));
        let now = limiter.now();
        for (number, after) in [(1, 30), (2, 10), (3, 20)] {
            held.insert(number, now + Duration::from_nanos(after), permit(&limiter)).unwrap();
        }
        clock.advance(Duration::from_nanos(20));
        while len(&held) != 1 {
            tokio::task::yield_now().await;
        }
        stopping.cancel();
        task.await.unwrap();
        assert_eq!((len(&held), limiter.stats("k").limits[0].held), (0, 0));
        assert!(
            held.insert(4, now + Duration::from_nanos(99), permit(&limiter)).is_err(),
            "the server has stopped"
        );
    }
}
