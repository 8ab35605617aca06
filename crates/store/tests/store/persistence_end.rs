//! Drop of a limiter with a store, which writes all changes.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{KeyChanges, NamedQuota};
use paceline_limiter::{Cost, Limiter, Quota};
use paceline_store::{Persistence, Sqlite, State, Store, StoreError};

use super::sqlite::folder;

const NEVER: Duration = Duration::from_secs(86_400);

/// A store that reports the thread of each sync, and waits for permission to return.
#[derive(Debug)]
struct GatedStore {
    calls: Sender<(i64, ThreadId)>,
    permission: Receiver<()>,
}

impl Store for GatedStore {
    fn open(&mut self, _now: Timestamp) -> Result<State, StoreError> {
        Ok(State::default())
    }

    fn sync(
        &mut self,
        changes: &[KeyChanges],
        _quotas: Option<&[NamedQuota]>,
        _now: Timestamp,
    ) -> Result<Vec<KeyChanges>, StoreError> {
        let taken = changes.iter().flat_map(|key| &key.buckets).flat_map(|bucket| &bucket.taken);
        let taken = taken.map(|(_, amount)| amount).sum();
        let _ = self.calls.send((taken, thread::current().id()));
        let _ = self.permission.recv();
        Ok(Vec::new())
    }

    fn close(&mut self, _now: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn drop_of_last_clone_waits_for_flush_and_writes_the_rest() {
    let ((calls, received), (permit, permission)) = (channel(), channel());
    let limiter = Limiter::builder().quota("k", Quota::new().rpd(50)).build().unwrap();
    permit.send(()).unwrap();
    let persistence =
        Persistence::start(&limiter, GatedStore { calls, permission }, NEVER).unwrap();
    assert_eq!(received.recv().unwrap().0, 0);
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let clone = persistence.clone();
    let flush = thread::spawn(move || clone.flush_now());
    assert_eq!(received.recv().unwrap(), (1, flush.thread().id()), "the flush is in progress");
    for _ in 0..2 {
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    }
    let end = thread::spawn(move || drop(limiter));
    permit.send(()).unwrap();
    let last = received.recv().unwrap();
    assert_eq!(last, (2, end.thread().id()), "the dropping thread writes the later changes");
    permit.send(()).unwrap();
    end.join().unwrap();
    flush.join().unwrap().unwrap();
    assert!(
        persistence.flush_now().is_ok() && received.try_recv().is_err(),
        "no call after the end"
    );
}

#[test]
fn quota_set_right_before_drop_is_restored() {
    let (_folder, path) = folder();
    let start = || {
        let limiter = Limiter::builder().build().unwrap();
        Persistence::start(&limiter, Sqlite::new(&path), NEVER).unwrap();
        limiter
    };
    start().quotas().set("k", &Quota::new().rpd(7)).unwrap();
    assert_eq!(start().quotas().of("k"), Quota::new().rpd(7));
}
