//! Lists of all keys, with and without stats: sorted and without duplicates.

use paceline::limiter::{Limiter, ManualClock};
use paceline::quota::{Cost, Quota, Usage};

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
fn g15_configured_and_used_keys_are_sorted_and_unique() {
    assert_eq!(limiter().state().keys(), KEYS);
}

#[test]
fn g15_iter_yields_stats_in_order_of_keys() {
    let limiter = limiter();
    limiter.record("model-c", &Usage::default());
    let amounts: Vec<_> = limiter
        .state()
        .stats()
        .into_iter()
        .map(|(key, stats)| (key, stats.limits.first().map(|limit| (limit.used, limit.limit))))
        .collect();
    let used = [Some((0, 1)), None, Some((2, 3)), Some((1, 2)), Some((1, 2))];
    let expected: Vec<_> = KEYS.map(Into::into).into_iter().zip(used).collect();
    assert_eq!(amounts, expected);
    assert!(limiter.state().stats().into_iter().all(|(key, stats)| stats == limiter.stats(&key)));
}

#[test]
fn g15_thousand_keys_over_all_shards_are_sorted() {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let mut expected: Vec<_> = (0..1_000).map(|i| format!("key-{i}")).collect();
    limiter.quotas().set("key-*", &Quota::new().rpm(1)).unwrap();
    expected.iter().for_each(|key| drop(limiter.try_acquire(key, &Cost::new()).unwrap()));
    expected.sort();
    assert_eq!(limiter.state().keys(), expected);
    assert!(limiter.state().stats().into_iter().map(|(key, _)| key).eq(expected));
}
