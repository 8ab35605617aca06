//! All keys, and all keys with their figures: sorted, each once.

use tollgate::limiter::{Limiter, ManualClock};
use tollgate::quota::{Cost, Quota, Usage};

use super::rig::builder;

fn limiter() -> Limiter {
    let limiter = builder()
        .quota("model-c", Quota::new().rpm(3))
        .quota("model-a", Quota::new().rpm(1))
        .quota("tenant:*", Quota::new().rpm(2))
        .clock(ManualClock::new())
        .build()
        .unwrap();
    for used in ["tenant:z", "model-b", "model-c", "tenant:y", "model-b"] {
        drop(limiter.try_acquire(used, &Cost::new()).unwrap());
    }
    limiter
}

const KEYS: [&str; 5] = ["model-a", "model-b", "model-c", "tenant:y", "tenant:z"];

#[test]
fn g15_keys_that_have_a_quota_and_keys_that_were_used_are_sorted_and_named_once() {
    assert_eq!(limiter().state().keys(), KEYS);
}

#[test]
fn g15_the_figures_of_all_keys_come_in_the_same_order() {
    let limiter = limiter();
    limiter.record("model-c", &Usage::default());
    let figures: Vec<_> = limiter
        .state()
        .stats()
        .into_iter()
        .map(|(key, stats)| (key, stats.limits.first().map(|limit| (limit.used, limit.limit))))
        .collect();
    let used = [Some((0, 1)), None, Some((2, 3)), Some((1, 2)), Some((1, 2))];
    let expected: Vec<_> = KEYS.map(Into::into).into_iter().zip(used).collect();
    assert_eq!(figures, expected);
    assert!(limiter.state().stats().into_iter().all(|(key, stats)| stats == limiter.stats(&key)));
}

#[test]
fn g15_a_thousand_keys_over_all_shards_are_sorted_as_well() {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let mut expected: Vec<_> = (0..1_000).map(|i| format!("key-{i}")).collect();
    limiter.quotas().set("key-*", &Quota::new().rpm(1));
    expected.iter().for_each(|key| drop(limiter.try_acquire(key, &Cost::new()).unwrap()));
    expected.sort();
    assert_eq!(limiter.state().keys(), expected);
    assert!(limiter.state().stats().into_iter().map(|(key, _)| key).eq(expected));
}
