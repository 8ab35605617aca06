//! Changes collected for a store, while keys are used, reset, retired and pruned.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use paceline_limiter::limiter::{
    Attached, BucketChanges, Closing, KeyChanges, Limiter, WeakLimiter,
};
use paceline_limiter::quota::{Cost, Dimension, Quota, Window};
use paceline_limiter::seam;

use super::{
    Thread, assert_unused, block_on, builder, check, level, limiter, run_threads, thread_of, tokens,
};

/// All changes collected so far, in order.
#[derive(Debug, Clone, Default)]
struct Collected(Arc<std::sync::Mutex<Vec<KeyChanges>>>);

impl Collected {
    /// Returns a thread that collects twice, and prunes after each collection.
    fn collect_twice(&self, limiter: &Limiter) -> Thread {
        let collected = self.clone();
        thread_of(limiter, move |limiter| {
            for _ in 0..2 {
                collected.collect(limiter);
                limiter.state().prune();
            }
        })
    }

    fn collect(&self, limiter: &Limiter) {
        let changes = seam::collect_changes(limiter);
        self.0.lock().unwrap().extend(changes);
    }

    /// Collects for the last time. Returns all changes.
    fn all(&self, limiter: &Limiter) -> Vec<KeyChanges> {
        self.collect(limiter);
        assert_eq!(seam::collect_changes(limiter), [], "collected twice");
        self.0.lock().unwrap().clone()
    }
}

/// Returns the amount taken of one dimension.
fn sum(changes: &[KeyChanges], dimension: &Dimension) -> i64 {
    let buckets = changes.iter().flat_map(|change| &change.buckets);
    let of = buckets.filter(|bucket| bucket.dimension == *dimension);
    of.flat_map(|bucket| &bucket.taken).map(|(_, amount)| amount).sum()
}

/// Returns the tokens that a key holds, according to its last change.
fn held(changes: &[KeyChanges], key: &str) -> u64 {
    let of_key = changes.iter().rev().filter(|change| change.key == key);
    let mut buckets = of_key.flat_map(|change| &change.buckets);
    let last = buckets.find(|bucket| bucket.dimension == Dimension::Tokens);
    last.map_or(0, |bucket| bucket.held)
}

/// Returns a thread that acquires 10 tokens of the key and settles `settled`.
fn settle(limiter: &Limiter, key: &'static str, settled: u64) -> Thread {
    thread_of(limiter, move |limiter| {
        limiter.try_acquire(key, &tokens(10)).unwrap().settle(&tokens(settled));
    })
}

/// Returns a change by another process, which holds requests.
fn held_by_others(requests: u64) -> [KeyChanges; 1] {
    let mut change = KeyChanges::new("k");
    let held = BucketChanges::new(Dimension::Concurrency, Window::MINUTE, Vec::new(), requests);
    change.buckets.push(held);
    [change]
}

/// Returns a change by another process, which has taken tokens at the current time.
fn taken_by_others(limiter: &Limiter, amount: i64) -> [KeyChanges; 1] {
    let mut change = KeyChanges::new("k");
    let taken = vec![(limiter.now(), amount)];
    change.buckets.push(BucketChanges::new(Dimension::Tokens, Window::MINUTE, taken, 0));
    [change]
}

#[test]
fn changes_collected_while_key_is_used_and_pruned_add_up() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100).rpm(100));
        seam::track(&limiter);
        let collected = Collected::default();
        run_threads([
            settle(&limiter, "k", 3),
            settle(&limiter, "k", 4),
            collected.collect_twice(&limiter),
        ]);
        let changes = collected.all(&limiter);
        assert_eq!(sum(&changes, &Dimension::Tokens), 3 + 4);
        assert_eq!(sum(&changes, &Dimension::Requests), 2);
        assert_eq!(held(&changes, "k"), 0);
    });
}

#[test]
fn changes_collected_while_changes_are_applied_are_local() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        seam::track(&limiter);
        let collected = Collected::default();
        let apply = |amount: i64| {
            thread_of(&limiter, move |limiter| {
                seam::apply_changes(limiter, &taken_by_others(limiter, amount));
            })
        };
        run_threads([
            settle(&limiter, "k", 3),
            apply(20),
            apply(30),
            collected.collect_twice(&limiter),
        ]);
        let changes = collected.all(&limiter);
        assert_eq!(sum(&changes, &Dimension::Tokens), 3);
        assert_eq!(held(&changes, "k"), 0);
        assert_eq!(level(&limiter.stats("k"), &Dimension::Tokens), (3 + 20 + 30, 0));
    });
}

#[test]
fn changes_collected_while_key_is_reset_give_the_same_state() {
    check(|| {
        let quota = Quota::new().tpm(100).rpm(100);
        let (here, there) = (limiter(quota.clone()), limiter(quota));
        seam::track(&here);
        let collected = Collected::default();
        let early = here.try_acquire("k", &tokens(10)).unwrap();
        run_threads([
            settle(&here, "k", 3),
            thread_of(&here, |limiter| limiter.reset("k")),
            Box::new(move || early.settle(&tokens(4))),
            collected.collect_twice(&here),
        ]);
        seam::apply_changes(&there, &collected.all(&here));
        assert_eq!(here.stats("k"), there.stats("k"));
        assert_unused(&here, "k");
    });
}

#[test]
fn changes_collected_while_key_is_retired_add_up() {
    check(|| {
        let quota = Quota::new().tpm(100).rpm(100);
        let limiter = builder().quota("m-*", quota.clone()).build().unwrap();
        seam::track(&limiter);
        let collected = Collected::default();
        run_threads([
            settle(&limiter, "m-1", 3),
            settle(&limiter, "m-2", 4),
            thread_of(&limiter, move |limiter| {
                limiter.quotas().set("m-*", &quota.shared()).unwrap()
            }),
            collected.collect_twice(&limiter),
        ]);
        let changes = collected.all(&limiter);
        assert_eq!(sum(&changes, &Dimension::Tokens), 3 + 4);
        assert_eq!(sum(&changes, &Dimension::Requests), 2);
        ["m-1", "m-2", "m-*"].iter().for_each(|key| assert_eq!(held(&changes, key), 0, "{key}"));
    });
}

#[test]
fn changes_of_key_used_while_tracking_starts_are_whole() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let track = thread_of(&limiter, |limiter| seam::track(limiter));
        run_threads([settle(&limiter, "k", 3), track]);
        settle(&limiter, "k", 4)();
        let changes = seam::collect_changes(&limiter);
        let taken = sum(&changes, &Dimension::Tokens);
        assert!(taken == 4 || taken == 7, "{taken}");
        assert_eq!(held(&changes, "k"), 0);
    });
}

#[test]
fn keys_made_while_tracking_starts_are_tracked() {
    check(|| {
        let limiter = builder().quota("*", Quota::new().tpm(100)).build().unwrap();
        let make = |key: &'static str| {
            thread_of(&limiter, move |limiter| {
                drop(limiter.try_acquire(key, &Cost::new().tokens(0)).unwrap());
            })
        };
        let track = thread_of(&limiter, |limiter| seam::track(limiter));
        run_threads([make("a"), make("b"), track]);
        ["a", "b"].iter().for_each(|key| settle(&limiter, key, 4)());
        assert_eq!(sum(&seam::collect_changes(&limiter), &Dimension::Tokens), 8);
    });
}

#[test]
fn waiters_of_amounts_held_by_others_are_woken_when_freed() {
    check(|| {
        let limiter = limiter(Quota::new().concurrency(2));
        seam::apply_changes(&limiter, &held_by_others(2));
        let wait = |limiter: &Limiter| {
            drop(block_on(limiter.acquire("k", &tokens(1))).unwrap());
        };
        let apply = thread_of(&limiter, |limiter| {
            seam::apply_changes(limiter, &held_by_others(1));
            seam::collect_changes(limiter);
        });
        run_threads([thread_of(&limiter, wait), thread_of(&limiter, wait), apply]);
        seam::apply_changes(&limiter, &held_by_others(0));
        assert_unused(&limiter, "k");
    });
}

/// Counts the ends of a limiter, and the tokens of its last changes.
#[derive(Debug, Clone, Default)]
struct LastChanges {
    ends: Arc<AtomicUsize>,
    tokens: Arc<AtomicUsize>,
}

impl LastChanges {
    fn add(&self, changes: &[KeyChanges]) {
        let tokens = usize::try_from(sum(changes, &Dimension::Tokens)).unwrap();
        self.tokens.fetch_add(tokens, Ordering::SeqCst);
    }

    fn collect(&self, limiter: &WeakLimiter) {
        let Some(limiter) = limiter.upgrade() else { return };
        self.add(&seam::collect_changes(&limiter));
    }
}

impl Attached for LastChanges {
    fn close(&self) -> Closing {
        Box::pin(std::future::ready(()))
    }

    fn end(&self, last: Vec<KeyChanges>) {
        self.ends.fetch_add(1, Ordering::SeqCst);
        self.add(&last);
    }
}

#[test]
fn last_clone_dropped_by_any_thread_ends_limiter_once() {
    check(|| {
        let limiter = limiter(Quota::new().tpm(100));
        let changes = LastChanges::default();
        seam::track(&limiter);
        seam::attach(&limiter, Arc::new(changes.clone()));
        let (weak, collected) = (limiter.downgrade(), changes.clone());
        let threads: [Thread; 3] = [
            settle(&limiter, "k", 3),
            settle(&limiter, "k", 4),
            Box::new(move || collected.collect(&weak)),
        ];
        drop(limiter);
        run_threads(threads);
        assert_eq!(changes.ends.load(Ordering::SeqCst), 1);
        assert_eq!(changes.tokens.load(Ordering::SeqCst), 7);
    });
}
