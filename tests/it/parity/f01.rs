//! Several buckets checked in one atomic step, with limits given per call.

use std::sync::Arc;

use paceline::limiter::{Code, Event, Limiter, ManualClock, Metadata};
use paceline::quota::{Cost, Dimension, Quota};

use super::rig::{builder, tokens, used};

/// Returns the key of an entity and an operation.
fn key(entity: &str, operation: &str) -> String {
    format!("{entity}:{operation}")
}

fn limiter() -> Limiter {
    builder().clock(ManualClock::new()).build().unwrap()
}

#[test]
fn f01_one_call_charges_every_bucket() {
    let limiter = limiter();
    let (key, limits) = (key("openai-key", "call"), Quota::new().rpm(10_000).tpm(2_000_000));
    for done in 1..=3 {
        limiter.acquire(&key, &tokens(1_500)).limits(&limits).try_now().unwrap();
        assert_eq!(used(&limiter, &key), [done, done * 1_500]);
    }
}

#[test]
fn f01_refusing_bucket_leaves_others_unchanged() {
    let orders = [Quota::new().rpm(10).tpm(100), Quota::new().tpm(100).rpm(10)];
    for limits in orders {
        let limiter = limiter();
        let attempt = |cost: &Cost| limiter.acquire("k", cost).limits(&limits).try_now().map(drop);
        attempt(&tokens(95)).unwrap();
        let before = (limiter.stats("k"), limiter.state().snapshot());
        for _ in 0..50 {
            let refused = attempt(&tokens(6)).unwrap_err();
            assert_eq!(refused.dimension, Some(Dimension::Tokens));
        }
        assert_eq!((limiter.stats("k"), limiter.state().snapshot()), before);
        // The nine remaining requests are available at a lower cost.
        (0..9).for_each(|_| attempt(&Cost::new()).unwrap());
        assert_eq!(attempt(&Cost::new()).unwrap_err().code, Code::RpmExceeded);
    }
}

#[test]
fn f01_racing_threads_count_equally_in_two_buckets() {
    let limiter = limiter();
    let limits = Quota::new().rpm(1_000).tpm(7 * 600);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let acquire = limiter.acquire("k", &tokens(7)).limits(&limits);
                    let _ = acquire.try_now();
                }
            });
        }
    });
    assert_eq!(used(&limiter, "k"), [600, 7 * 600]);
}

#[test]
fn f01_each_entity_and_operation_has_separate_buckets() {
    let limiter = limiter();
    let limits = Quota::new().rpm(1);
    let attempt =
        |key: String| limiter.acquire(&key, &Cost::new()).limits(&limits).try_now().is_ok();
    assert!(attempt(key("one", "call")));
    assert!(!attempt(key("one", "call")));
    assert!(attempt(key("one", "evaluation")));
    assert!(attempt(key("two", "call")));
}

#[test]
fn f01_decide_makes_no_reservation_and_creates_no_key() {
    let limiter = limiter();
    let limits = Quota::new().rpm(1).tpm(100);
    for _ in 0..5 {
        assert_eq!(limiter.acquire("k", &tokens(100)).limits(&limits).decide().code, Code::Ok);
    }
    assert!(limiter.state().keys().is_empty());
    limiter.acquire("k", &tokens(100)).limits(&limits).try_now().unwrap();
    let more = limiter.acquire("k", &tokens(100)).limits(&Quota::new().rpm(9).tpm(300)).decide();
    assert_eq!((more.code, more.stats.limits[1].used), (Code::Ok, 100));
    assert_eq!(limiter.quotas().of("k"), limits);
}

#[test]
fn f01_metadata_is_passed_to_granted_and_denied_events() {
    let limiter = limiter();
    let mut events = limiter.subscribe();
    let metadata: Metadata = Arc::from([("trace".to_owned(), "t-7".to_owned())]);
    for _ in 0..2 {
        let acquire = limiter.acquire("k", &Cost::new()).limits(&Quota::new().rpm(1));
        let _ = acquire.metadata(Arc::clone(&metadata)).try_now();
    }
    let mut carried = Vec::new();
    while let Ok(event) = events.try_recv() {
        match event {
            Event::Granted { metadata, .. } => carried.push(("granted", metadata)),
            Event::Denied { metadata, .. } => carried.push(("denied", metadata)),
            _ => {}
        }
    }
    assert_eq!(carried, [("granted", Some(Arc::clone(&metadata))), ("denied", Some(metadata))]);
}
