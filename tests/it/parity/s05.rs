//! A refusal halves the limits of a key, once per burst of refusals.

use paceline::Timestamp;
use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Agent, LocalBus};
use paceline::limiter::{Event, Limiter, ManualClock, RateLimited, Reduction};
use paceline::quota::{Cost, Quota};

use super::rig::{S, buckets, builder};

/// Returns a limiter with one key `k`: 100 requests per minute, 1,000 per day, eight concurrent.
fn limiter(clock: &ManualClock) -> Limiter {
    let quota = buckets(Quota::new().rpm(100).rpd(1_000).concurrency(8));
    let reduction = Reduction::new().spread(Duration::ZERO);
    builder().reduction(reduction).quota("k", quota).clock(clock.clone()).build().unwrap()
}

/// Returns the current and original amount of each limit.
pub(super) fn amounts(limiter: &Limiter) -> Vec<(u64, u64)> {
    limiter.stats("k").limits.iter().map(|limit| (limit.limit, limit.original)).collect()
}

fn refusal(sent_at: Timestamp) -> RateLimited {
    RateLimited::new(Some(Duration::from_secs(1))).sent_at(sent_at)
}

#[test]
fn s05_refusal_halves_rates_and_concurrency_but_not_days() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    limiter.feedback().rate_limited("k", &refusal(limiter.now()));
    assert_eq!(amounts(&limiter), [(50, 100), (1_000, 1_000), (4, 8)]);
    assert_eq!(limiter.quotas().of("k"), buckets(Quota::new().rpm(100).rpd(1_000).concurrency(8)));
}

#[test]
fn s05_burst_of_refusals_halves_once_later_refusal_again() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let sent: Vec<_> = (0..5).map(|_| limiter.try_acquire("k", &Cost::new()).unwrap()).collect();
    clock.advance(Duration::from_millis(300));
    for permit in &sent {
        limiter.feedback().rate_limited("k", &refusal(permit.granted_at()));
        clock.advance(Duration::from_millis(50));
    }
    drop(sent);
    assert_eq!(amounts(&limiter)[0], (50, 100));
    clock.advance(Duration::from_secs(5));
    let later = limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.feedback().rate_limited("k", &refusal(later.granted_at()));
    assert_eq!(amounts(&limiter)[0], (25, 100));
}

#[test]
fn s05_announced_reduction_applies_once_in_ten_seconds() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let mut events = limiter.subscribe();
    assert!(limiter.feedback().reduce("k", "received 429 response"));
    assert!(!limiter.feedback().reduce("k", "received 429 response"));
    let event = Event::Reduced {
        key: "k".into(),
        capacity: 50,
        reason: "received 429 response".into(),
        agent: None,
    };
    assert_eq!(events.try_recv().unwrap(), event);
    assert!(events.try_recv().is_err());
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    clock.advance(10 * S + Duration::from_nanos(1));
    assert!(limiter.feedback().reduce("k", "again"));
    assert_eq!(amounts(&limiter)[0], (25, 100));
}

#[test]
fn s05_reduced_limit_is_at_least_one() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    for _ in 0..20 {
        clock.advance(Duration::from_secs(11));
        limiter.feedback().reduce("k", "again");
    }
    assert_eq!(amounts(&limiter), [(1, 100), (1_000, 1_000), (1, 8)]);
}

#[test]
fn s05_burst_is_announced_on_bus_once() {
    let (clock, bus) = (ManualClock::new(), Arc::new(LocalBus::new()));
    let (here, there) = (limiter(&clock), limiter(&clock));
    let agent = Agent::join(&here, bus.clone(), "here").unwrap();
    Agent::join(&there, bus, "there").unwrap();
    for _ in 0..5 {
        here.feedback().reduce("k", "received 429 response");
    }
    assert_eq!(amounts(&there), [(50, 100), (1_000, 1_000), (4, 8)]);
    assert_eq!(agent.status().announced, 1);
    clock.advance(Duration::from_secs(11));
    for _ in 0..5 {
        here.feedback().rate_limited("k", &refusal(here.now()));
    }
    assert_eq!(amounts(&there)[0], (25, 100));
    assert!(there.try_acquire("k", &Cost::new()).is_err(), "the other limiter pauses too");
    assert_eq!(agent.status().announced, 3);
}
