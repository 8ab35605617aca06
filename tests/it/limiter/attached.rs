use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use paceline::limiter::{Attached, Clock, Closing, KeyChanges, Limiter};
use paceline::quota::{Dimension, Quota};
use paceline_limiter::seam;
use parking_lot::Mutex;

use super::{manual, tokens};

/// Records the calls of an attached component.
#[derive(Default)]
struct Recorder {
    closed: AtomicUsize,
    ends: Mutex<Vec<Vec<KeyChanges>>>,
}

/// A component that is attached to the limiter. Its recorder outlives it.
struct Recorded(Arc<Recorder>);

impl Attached for Recorded {
    fn close(&self) -> Closing {
        let recorder = Arc::clone(&self.0);
        Box::pin(async move {
            tokio::task::yield_now().await;
            recorder.closed.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn end(&self, last: Vec<KeyChanges>) {
        self.0.ends.lock().push(last);
    }
}

fn recorded() -> (Limiter, Arc<Recorder>) {
    let (limiter, _) = manual(Quota::new().rpm(10).tpm(1_000));
    let recorder = Arc::<Recorder>::default();
    seam::track(&limiter);
    seam::attach(&limiter, Arc::new(Recorded(Arc::clone(&recorder))));
    (limiter, recorder)
}

#[test]
fn attached_when_last_clone_drops_ends_once() {
    let (limiter, recorder) = recorded();
    let (clone, weak) = (limiter.clone(), limiter.downgrade());
    let (handle, gate) = (limiter.key("k").unwrap(), limiter.gate(&["k"]).unwrap());
    let permit = limiter.try_acquire("k", &tokens(100)).unwrap();
    drop(limiter);
    assert!(recorder.ends.lock().is_empty());
    let again = weak.upgrade().unwrap();
    drop(clone);
    assert!(recorder.ends.lock().is_empty());
    drop(again);
    assert!(weak.upgrade().is_none());
    {
        let ends = recorder.ends.lock();
        let [last] = &ends[..] else { panic!("ended {} times", ends.len()) };
        let reported =
            |dimension| last[0].buckets.iter().find(|b| b.dimension == dimension).unwrap();
        assert_eq!(reported(Dimension::Tokens).held, 100, "held amounts are reported");
        assert_eq!(reported(Dimension::Requests).taken.len(), 1);
    }
    permit.settle(&tokens(50));
    drop(handle.try_acquire(&tokens(1)).unwrap());
    drop((handle, gate));
    assert_eq!(recorder.ends.lock().len(), 1);
}

#[tokio::test]
async fn close_waits_for_attached_and_end_reports_later_changes() {
    let (limiter, recorder) = recorded();
    let permit = limiter.try_acquire("k", &tokens(100)).unwrap();
    limiter.close().await;
    assert_eq!(recorder.closed.load(Ordering::SeqCst), 1);
    assert_eq!(seam::collect_changes(&limiter).len(), 1);
    permit.settle(&tokens(60));
    drop(limiter);
    let ends = recorder.ends.lock();
    assert_eq!(ends.len(), 1);
    let [bucket] = &ends[0][0].buckets[..] else { panic!("{:?}", ends[0]) };
    assert_eq!((bucket.taken[0].1, bucket.held), (60, 0));
}

#[test]
fn attached_component_may_reference_limiter() {
    let (limiter, recorder) = recorded();
    let weak = limiter.downgrade();
    let thread = std::thread::spawn(move || {
        while let Some(limiter) = weak.upgrade() {
            seam::collect_changes(&limiter);
        }
    });
    drop(limiter.try_acquire("k", &tokens(1)).unwrap());
    drop(limiter);
    thread.join().unwrap();
    assert_eq!(recorder.ends.lock().len(), 1);
}

#[test]
fn listener_with_weak_reference_does_not_keep_limiter() {
    let (limiter, clock) = manual(Quota::new().rpm(10));
    let (weak, owned) = (limiter.downgrade(), Arc::new(()));
    let (listening, left) = (weak.clone(), Arc::downgrade(&owned));
    limiter
        .listen(move |_| assert!(listening.upgrade().is_some() && Arc::strong_count(&owned) > 0));
    drop(limiter.try_acquire("k", &tokens(1)).unwrap());
    drop(limiter);
    assert_eq!(left.strong_count(), 0);
    assert_eq!(weak.now(), clock.now());
    assert!(weak.upgrade().is_none() && weak.upgrade_detached().is_none());
}
