//! What changes, collected and taken over while it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate::limiter::{Attached, BucketChanges, Closing, KeyChanges, Limiter};
use tollgate::quota::{Dimension, Quota, Window};

use super::{assert_nobody_there, block_on, check, limiter, together, tokens};

/// What was taken of one dimension.
fn sum(changes: &[KeyChanges], dimension: &Dimension) -> i64 {
    let buckets = changes.iter().flat_map(|change| &change.buckets);
    let of = buckets.filter(|bucket| bucket.dimension == *dimension);
    of.flat_map(|bucket| &bucket.taken).map(|(_, amount)| amount).sum()
}

fn use_once(limiter: &Limiter, settled: u64) -> impl FnOnce() + Send + use<> {
    let limiter = limiter.clone();
    move || limiter.try_acquire("k", &tokens(10)).unwrap().settle(&tokens(settled))
}

fn others_hold(requests: u64) -> [KeyChanges; 1] {
    let mut change = KeyChanges::new("k");
    let held = BucketChanges::new(Dimension::Concurrency, Window::MINUTE, Vec::new(), requests);
    change.buckets.push(held);
    [change]
}

#[test]
fn what_is_collected_while_others_use_and_forget_a_key_adds_up() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).rpm(100));
        limiter.state().track();
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let collect = {
            let (limiter, told) = (limiter.clone(), Arc::clone(&told));
            move || {
                for _ in 0..2 {
                    let changes = limiter.state().collect_changes();
                    told.lock().unwrap().extend(changes);
                    limiter.prune();
                }
            }
        };
        together([
            Box::new(use_once(&limiter, 3)),
            Box::new(use_once(&limiter, 4)),
            Box::new(collect),
        ]);
        let mut told = told.lock().unwrap();
        told.extend(limiter.state().collect_changes());
        assert_eq!(sum(&told, &Dimension::Tokens), 3 + 4);
        assert_eq!(sum(&told, &Dimension::Requests), 2);
        let last = told.iter().rev().flat_map(|change| &change.buckets);
        let last = last.filter(|bucket| bucket.dimension == Dimension::Tokens).map(|b| b.held);
        assert_eq!(last.clone().next(), Some(0));
        assert_eq!(limiter.state().collect_changes(), []);
    });
}

#[test]
fn a_key_that_begins_to_be_tracked_while_it_is_used_tells_all_from_then_on() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let track = {
            let limiter = limiter.clone();
            move || limiter.state().track()
        };
        together([Box::new(use_once(&limiter, 3)), Box::new(track)]);
        use_once(&limiter, 4)();
        let told = sum(&limiter.state().collect_changes(), &Dimension::Tokens);
        assert!(told == 4 || told == 7, "{told}");
    });
}

#[test]
fn whoever_waits_for_what_others_hold_is_woken_when_they_hold_it_no_more() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(2));
        limiter.state().apply_changes(&others_hold(2));
        let wait = {
            let limiter = limiter.clone();
            move || drop(block_on(limiter.acquire("k", &tokens(1))).unwrap())
        };
        let hear = {
            let limiter = limiter.clone();
            move || {
                limiter.state().apply_changes(&others_hold(1));
                limiter.state().collect_changes();
            }
        };
        together([Box::new(wait.clone()), Box::new(wait), Box::new(hear)]);
        limiter.state().apply_changes(&others_hold(0));
        assert_nobody_there(&limiter, "k");
    });
}

#[test]
fn a_limiter_ends_once_whoever_has_its_last_clone() {
    struct Witness(Arc<AtomicUsize>, Arc<AtomicUsize>);

    impl Attached for Witness {
        fn close(&self) -> Closing {
            Box::pin(std::future::ready(()))
        }

        fn end(&self, last: Vec<KeyChanges>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            let told = usize::try_from(sum(&last, &Dimension::Tokens)).unwrap();
            self.1.fetch_add(told, Ordering::SeqCst);
        }
    }

    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let (ends, told) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        limiter.state().track();
        limiter.state().attach(Arc::new(Witness(Arc::clone(&ends), Arc::clone(&told))));
        let weak = limiter.downgrade();
        let collect = {
            let told = Arc::clone(&told);
            move || {
                let Some(limiter) = weak.upgrade() else { return };
                let changes = limiter.state().collect_changes();
                let sum = usize::try_from(sum(&changes, &Dimension::Tokens)).unwrap();
                told.fetch_add(sum, Ordering::SeqCst);
            }
        };
        let (first, second) = (use_once(&limiter, 3), use_once(&limiter, 4));
        drop(limiter);
        together([Box::new(first), Box::new(second), Box::new(collect)]);
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        assert_eq!(told.load(Ordering::SeqCst), 7);
    });
}
