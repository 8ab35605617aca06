//! The order of keys in the list of the busiest.

use std::time::Duration;

use paceline::limiter::{Limiter, ManualClock, RateLimited};
use paceline::quota::{Cost, Margin, Quota};
use proptest::prelude::*;

fn limiter(clock: &ManualClock) -> Limiter {
    let builder = Limiter::builder().clock(clock.clone()).margin(Margin::NONE);
    let builder = builder.quota("*", Quota::new().rpm(10)).quota("never", Quota::new().rpm(1));
    builder.build().unwrap()
}

fn take(limiter: &Limiter, key: &str, times: u64) {
    (0..times).for_each(|_| drop(limiter.try_acquire(key, &Cost::new())));
}

#[test]
fn busiest_sorts_by_waiting_cool_down_usage_and_name() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    for (key, times) in [("e", 3), ("d", 3), ("c", 9), ("b", 1), ("a", 10)] {
        take(&limiter, key, times);
    }
    limiter.feedback().rate_limited("b", &RateLimited::new(Some(Duration::from_secs(9))));
    let mut waits = [0, 1].map(|_| limiter.acquire("a", &Cost::new()));
    assert!(waits.iter_mut().all(|wait| wait.arrive().is_none()));
    let busiest = limiter.state().busiest(5);
    let names: Vec<_> = busiest.keys.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!((busiest.others, busiest.waiting), (1, 2));
    assert_eq!(busiest.keys[0].1, limiter.stats("a"));
    assert_eq!(limiter.state().busiest(0).others, 6);
    assert_eq!(limiter.state().busiest(9).keys[5].0, "never");
}

proptest! {
    /// The result equals sorting all keys.
    #[test]
    fn busiest_equals_sorting_all_keys(
        used in prop::collection::vec(0_u64..=10, 0..300),
        most in 0_usize..320,
    ) {
        let clock = ManualClock::new();
        let limiter = limiter(&clock);
        for (number, used) in used.iter().enumerate() {
            take(&limiter, &format!("key {number:03}"), *used);
        }
        let mut all: Vec<_> = limiter.state().stats();
        all.sort_by_key(|(key, stats)| (std::cmp::Reverse(stats.limits[0].used), key.clone()));
        let busiest = limiter.state().busiest(most);
        prop_assert_eq!(busiest.others, all.len().saturating_sub(most));
        all.truncate(most);
        prop_assert_eq!(busiest.keys, all);
    }
}
