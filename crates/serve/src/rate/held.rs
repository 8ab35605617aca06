use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::expiring::{self, Expiring};
use tollgate::Timestamp;
use tollgate::limiter::{Limiter, Permit};

/// Permits by the numbers of their grants, each until its time: one task ends them all.
pub(super) struct Held {
    table: Mutex<Table>,
    most: usize,
    /// The next time is nearer than it was.
    nearer: Notify,
}

struct Table {
    permits: Expiring<u64, Permit>,
    closed: bool,
}

impl Held {
    /// Room for so many.
    pub(super) fn new(most: usize) -> Self {
        let table = Table { permits: Expiring::new(), closed: false };
        Self { table: Mutex::new(table), most, nearer: Notify::new() }
    }

    /// Holds a permit until this time.
    ///
    /// # Errors
    /// The permit, if there is no room or the server has stopped.
    pub(super) fn keep(&self, number: u64, until: Timestamp, permit: Permit) -> Result<(), Permit> {
        let mut table = self.table.lock();
        if table.closed || table.permits.len() >= self.most {
            return Err(permit);
        }
        let first = table.permits.insert(number, until, permit);
        drop(table);
        if first {
            self.nearer.notify_one();
        }
        Ok(())
    }

    /// Hands a permit out whose time has not come.
    pub(super) fn take(&self, number: u64, now: Timestamp) -> Option<Permit> {
        let (until, permit) = self.table.lock().permits.remove(number)?;
        (now < until).then_some(permit)
    }

    /// Ends those whose time has come, and says when that of the next will.
    fn expire(&self, now: Timestamp) -> Option<Timestamp> {
        let mut table = self.table.lock();
        let (over, next) = (table.permits.expire(now), table.permits.next());
        drop(table);
        // What they took stays taken, and what they occupied is free; not under the lock, since it
        // wakes others.
        drop(over);
        next
    }

    /// Ends each at its time, and all of them when the server stops.
    pub(super) async fn run(self: Arc<Self>, limiter: Limiter, stopping: CancellationToken) {
        expiring::run(&limiter, &self.nearer, &stopping, |now| self.expire(now)).await;
        let mut table = self.table.lock();
        table.closed = true;
        let all = table.permits.drain();
        drop(table);
        drop(all);
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permits = self.table.lock().permits.len();
        f.debug_struct("Held").field("permits", &permits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tollgate::limiter::ManualClock;
    use tollgate::quota::{Cost, Quota};

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

    fn size(held: &Held) -> usize {
        held.table.lock().permits.len()
    }

    #[test]
    fn a_permit_is_handed_out_once_and_before_its_time() {
        let (held, (limiter, _clock)) = (Held::new(9), limiter());
        for number in 0..2 {
            held.keep(number, at(100), permit(&limiter)).unwrap();
        }
        assert!(held.take(0, at(99)).is_some());
        assert!(held.take(0, at(99)).is_none());
        assert!(held.take(1, at(100)).is_none());
        assert_eq!(limiter.stats("k").limits[0].held, 0);
    }

    #[test]
    fn nothing_is_left_of_one_that_was_handed_out() {
        let (held, (limiter, _clock)) = (Held::new(1), limiter());
        for number in 0..1000 {
            held.keep(number, at(100), permit(&limiter)).unwrap();
            assert!(held.keep(1000, at(100), permit(&limiter)).is_err(), "no room");
            assert!(held.take(number, at(0)).is_some());
        }
        assert_eq!(size(&held), 0);
    }

    #[tokio::test]
    async fn one_task_ends_each_at_its_time_and_all_at_the_end() {
        let (held, (limiter, clock)) = (Arc::new(Held::new(9)), limiter());
        let stopping = CancellationToken::new();
        let task = tokio::spawn(Arc::clone(&held).run(limiter.clone(), stopping.clone()));
        let now = limiter.now();
        for (number, after) in [(1, 30), (2, 10), (3, 20)] {
            held.keep(number, now + Duration::from_nanos(after), permit(&limiter)).unwrap();
        }
        clock.advance(Duration::from_nanos(20));
        while size(&held) != 1 {
            tokio::task::yield_now().await;
        }
        stopping.cancel();
        task.await.unwrap();
        assert_eq!((size(&held), limiter.stats("k").limits[0].held), (0, 0));
        assert!(
            held.keep(4, now + Duration::from_nanos(99), permit(&limiter)).is_err(),
            "it has stopped"
        );
    }
}
