//! A reduced key recovers in steps up to the original limits.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Agent, LocalBus};
use paceline::limiter::{Event, Limiter, ManualClock, Reduction};
use paceline::quota::{Cost, Quota};

use super::rig::{buckets, builder};
use super::s05::amounts;

fn limiter(quota: Quota, clock: &ManualClock) -> Limiter {
    let builder = builder().reduction(Reduction::new()).quota("k", buckets(quota));
    builder.clock(clock.clone()).build().unwrap()
}

#[test]
fn s08_recovery_adds_a_tenth_every_30_s_up_to_original() {
    let clock = ManualClock::new();
    let limiter = limiter(Quota::new().rpm(100), &clock);
    let mut events = limiter.subscribe();
    limiter.feedback().reduce("k", "429");
    let mut seen = Vec::new();
    for _ in 0..9 {
        clock.advance(Duration::from_nanos(30_000_000_000 - 1));
        let before = amounts(&limiter)[0].0;
        clock.advance(Duration::from_nanos(1));
        seen.push((before, amounts(&limiter)[0].0));
    }
    let steps = [50, 55, 60, 66, 72, 79, 86, 94, 100, 100];
    let expected: Vec<_> = steps.windows(2).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!(seen, expected);
    assert!(matches!(events.try_recv(), Ok(Event::Reduced { .. })));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let recovered = Event::Recovered { key: "k".into(), capacity: 100 };
    let seen_events: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert_eq!(
        seen_events.iter().filter(|event| **event == recovered).count(),
        1,
        "{seen_events:?}"
    );
}

#[test]
fn s08_small_limits_recover_by_at_least_one() {
    let clock = ManualClock::new();
    let limiter = limiter(Quota::new().rpm(3).concurrency(4), &clock);
    limiter.feedback().reduce("k", "429");
    assert_eq!(amounts(&limiter), [(1, 3), (2, 4)]);
    clock.advance(Duration::from_secs(30));
    assert_eq!(amounts(&limiter), [(2, 3), (3, 4)]);
    clock.advance(Duration::from_secs(30));
    assert_eq!(amounts(&limiter), [(3, 3), (4, 4)]);
}

#[test]
fn s08_unused_key_recovers_and_can_be_pruned() {
    let clock = ManualClock::new();
    let limiter = limiter(Quota::new().rpm(100), &clock);
    limiter.feedback().reduce("k", "429");
    clock.advance(Duration::from_secs(239));
    assert_eq!(limiter.state().prune(), 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(limiter.state().prune(), 1);
}

#[test]
fn s08_followers_recover_with_the_sender() {
    let (clock, bus) = (ManualClock::new(), Arc::new(LocalBus::new()));
    let limiters = [(); 3].map(|()| limiter(Quota::new().rpm(3), &clock));
    for (number, limiter) in limiters.iter().enumerate() {
        Agent::join(limiter, bus.clone(), number.to_string()).unwrap();
    }
    limiters[0].feedback().reduce("k", "429");
    for expected in [1, 2, 3, 3] {
        assert!(limiters.iter().all(|limiter| amounts(limiter) == [(expected, 3)]));
        clock.advance(Duration::from_secs(30));
    }
}
