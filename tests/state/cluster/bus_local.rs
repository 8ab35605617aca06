//! Messages between agents over a bus within the process, on manual clocks.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use paceline::cluster::{Agent, Bus, LocalBus};
use paceline::limiter::{Ignored, Limiter, ManualClock, RateLimited, Reduction, Regex};
use paceline::quota::{Cost, Quota};
use serde_json::Value;

use super::swarm::{Swarm, builder, capacity, subscribe_to};

fn local() -> Arc<dyn Bus> {
    Arc::new(LocalBus::new())
}

/// Returns an agent with 500 requests per minute for each key and exact pauses.
fn agent(bus: &Arc<dyn Bus>, id: &str, clock: &ManualClock) -> (Limiter, Agent) {
    let reduction = Reduction::new().spread(Duration::ZERO);
    let limiter = builder().reduction(reduction).clock(clock.clone()).build().unwrap();
    let agent = Agent::join(&limiter, Arc::clone(bus), id).unwrap();
    (limiter, agent)
}

fn refusal(seconds: u64) -> RateLimited {
    RateLimited::new(Some(Duration::from_secs(seconds)))
}

fn capacity_message(resource: &str, agent: &str, capacity: i64, time: &str) -> String {
    format!(
        r#"{{"resource":"{resource}","agent_id":"{agent}","new_capacity":{capacity},"reason":"429","timestamp":"{time}"}}"#
    )
}

/// Returns the only published message.
fn only(published: &Receiver<Vec<u8>>) -> Value {
    let message = published.try_recv().expect("a message");
    assert!(published.try_recv().is_err(), "only one");
    serde_json::from_slice(&message).unwrap()
}

#[test]
fn one_of_twenty_announces_and_all_reduce() {
    let bus = local();
    let swarm = Swarm::new(20, || Arc::clone(&bus));
    assert!(swarm.limiter(7).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(19);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 20]);
    assert_eq!(bus.status().published, 1);
}

#[test]
fn ignored_messages_are_counted_by_reason() {
    let (bus, clock) = (local(), ManualClock::new());
    let (limiter, agent) = agent(&bus, "me", &clock);
    clock.advance(Duration::from_secs(60));
    let now = "2026-01-01T00:01:00Z";
    let messages = [
        (capacity_message("gpt-4o", "me", 50, now), Some(Ignored::Own)),
        (capacity_message("x", "other", 50, now), Some(Ignored::Unknown)),
        (capacity_message("gpt-4o", "other", 0, now), Some(Ignored::Zero)),
        (capacity_message("gpt-4o", "other", -50, now), Some(Ignored::Zero)),
        (capacity_message("gpt-4o", "other", 500, now), Some(Ignored::NotLower)),
        (capacity_message("gpt-4o", "other", 900, now), Some(Ignored::NotLower)),
        (capacity_message("gpt-4o", "other", 50, "2026-01-01T00:00:29Z"), Some(Ignored::Stale)),
        (capacity_message("gpt-4o", "other", 50, "2026-01-01T00:01:31Z"), Some(Ignored::Stale)),
        (capacity_message("gpt-4o", "other", 50, "soon"), None),
        ("{}".into(), None),
        ("not JSON".into(), None),
    ];
    let mut expected = agent.status();
    for (message, why) in messages {
        bus.publish("ratelimit.capacity", message.as_bytes());
        match why {
            Some(why) => *expected.ignored.entry(why).or_default() += 1,
            None => expected.malformed += 1,
        }
        let status = agent.status();
        assert_eq!((status.applied, capacity(&limiter, "gpt-4o")), (0, 500), "{message}");
        assert_eq!((status.malformed, &status.ignored), (expected.malformed, &expected.ignored));
    }
    bus.publish("ratelimit.capacity", capacity_message("gpt-4o", "other", 50, now).as_bytes());
    assert_eq!((agent.status().applied, capacity(&limiter, "gpt-4o")), (1, 50));
    assert_eq!(agent.status().announced, 0);
}

#[test]
fn message_of_go_agent_is_applied() {
    let (bus, clock) = (local(), ManualClock::new());
    let (limiter, agent) = agent(&bus, "me", &clock);
    let message = br#"{"resource":"gpt-4o","agent_id":"go-1","new_capacity":125,
        "reason":"received 429 response","timestamp":"2026-01-01T01:00:00.123456789+01:00",
        "window":{"seconds":60},"trace":null}"#;
    bus.publish("ratelimit.capacity", message);
    assert_eq!((agent.status().applied, capacity(&limiter, "gpt-4o")), (1, 125));
}

#[test]
fn published_json_has_exactly_the_documented_fields() {
    let (bus, clock) = (local(), ManualClock::new());
    let (limiter, _agent) = agent(&bus, "agent-\"7\"", &clock);
    clock.advance(Duration::from_nanos(1_000_000_001));
    let capacities = subscribe_to(&*bus, "ratelimit.capacity");
    let pauses = subscribe_to(&*bus, "ratelimit.cooldown");
    limiter.feedback().rate_limited("gpt-4o", &refusal(3));
    let expected = serde_json::json!({
        "resource": "gpt-4o",
        "agent_id": "agent-\"7\"",
        "new_capacity": 250,
        "reason": "refused by the provider",
        "timestamp": "2026-01-01T00:00:01.000000001Z",
    });
    assert_eq!(only(&capacities), expected);
    let expected = serde_json::json!({
        "resource": "gpt-4o",
        "agent_id": "agent-\"7\"",
        "retry_after_ms": 3_000,
        "reason": "refused by the provider",
        "timestamp": "2026-01-01T00:00:01.000000001Z",
    });
    assert_eq!(only(&pauses), expected);
}

#[test]
fn pausing_refusal_pauses_other_agents() {
    let (bus, clock) = (local(), ManualClock::new());
    let agents: Vec<_> = ["a", "b", "c"].map(|id| agent(&bus, id, &clock)).into();
    agents[0].0.feedback().rate_limited("gpt-4o", &refusal(3).until_reset());
    clock.advance(Duration::from_nanos(3_000_000_000 - 1));
    let free = || agents.iter().filter(|(l, _)| l.try_acquire("gpt-4o", &Cost::new()).is_ok());
    assert_eq!(free().count(), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(free().count(), 3);
    assert_eq!(capacity(&agents[1].0, "gpt-4o"), 500);
}

#[test]
fn burst_of_refusals_is_announced_once_longer_pause_again() {
    let (bus, clock) = (local(), ManualClock::new());
    let pauses = subscribe_to(&*bus, "ratelimit.cooldown");
    let (limiter, agent) = agent(&bus, "me", &clock);
    for _ in 0..50 {
        limiter.feedback().rate_limited("gpt-4o", &refusal(8));
        clock.advance(Duration::from_millis(10));
    }
    assert_eq!(only(&pauses)["retry_after_ms"], 8_000);
    assert_eq!(agent.status().announced, 2, "the pause and the reduction");
    limiter.feedback().rate_limited("gpt-4o", &refusal(20));
    assert_eq!(only(&pauses)["retry_after_ms"], 20_000);
}

#[test]
fn pause_is_announced_as_a_duration() {
    let bus = local();
    let (here, there) = (ManualClock::new(), ManualClock::new());
    there.advance(Duration::from_secs(20));
    let (sender, _sender) = agent(&bus, "a", &here);
    let (receiver, _receiver) = agent(&bus, "b", &there);
    sender.feedback().rate_limited("gpt-4o", &refusal(5));
    there.advance(Duration::from_nanos(5_000_000_000 - 1));
    assert!(receiver.try_acquire("gpt-4o", &Cost::new()).is_err());
    // The sliding window is empty, so a request fits after the pause.
    there.advance(Duration::from_nanos(1));
    assert!(receiver.try_acquire("gpt-4o", &Cost::new()).is_ok());
}

#[test]
fn follower_recovers_to_original_in_documented_time() {
    let (bus, clock) = (local(), ManualClock::new());
    let agents: Vec<_> = ["a", "b", "c"].map(|id| agent(&bus, id, &clock)).into();
    assert!(agents[0].0.feedback().reduce("gpt-4o", "received 429 response"));
    let steps = [250, 275, 302, 332, 365, 401, 441, 485, 500, 500];
    for expected in steps {
        let now: Vec<_> = agents.iter().map(|(limiter, _)| capacity(limiter, "gpt-4o")).collect();
        assert_eq!(now, [expected; 3]);
        clock.advance(Duration::from_secs(30));
    }
}

#[test]
fn small_quota_recovers_on_every_agent() {
    let (bus, clock) = (local(), ManualClock::new());
    let limiters: Vec<_> = (0..3)
        .map(|number| {
            let builder = Limiter::builder().quota("k", Quota::new().rpm(3));
            let limiter = builder.clock(clock.clone()).build().unwrap();
            Agent::join(&limiter, Arc::clone(&bus), format!("agent-{number}")).unwrap();
            limiter
        })
        .collect();
    limiters[0].feedback().reduce("k", "received 429 response");
    for expected in [1, 2, 3, 3] {
        let now: Vec<_> = limiters.iter().map(|limiter| capacity(limiter, "k")).collect();
        assert_eq!(now, [expected; 3]);
        clock.advance(Duration::from_secs(30));
    }
}

#[test]
fn update_from_one_bus_is_not_forwarded_to_another() {
    let (first, second, clock) = (local(), local(), ManualClock::new());
    let (sender, _sender) = agent(&first, "a", &clock);
    let (both, _both) = agent(&first, "b", &clock);
    Agent::join(&both, Arc::clone(&second), "b").unwrap();
    let received = subscribe_to(&*second, "ratelimit.capacity");
    sender.feedback().rate_limited("gpt-4o", &refusal(5));
    assert_eq!(capacity(&both, "gpt-4o"), 250);
    assert!(received.try_recv().is_err());
}

#[test]
fn agent_ends_with_limiter_and_drops_the_bus() {
    let (bus, clock) = (local(), ManualClock::new());
    let (limiter, member) = agent(&bus, "me", &clock);
    let (other, _other) = agent(&bus, "other", &clock);
    let weak = limiter.downgrade();
    drop(limiter);
    assert!(weak.upgrade().is_none());
    other.feedback().reduce("gpt-4o", "received 429 response");
    assert_eq!(member.status().applied, 0);
    assert_eq!(member.id(), "me");
    drop((member, other, _other, weak));
    assert_eq!(Arc::strong_count(&bus), 1, "the bus is not referenced any more");
}

#[test]
fn waiter_is_rejected_by_announced_pause_beyond_deadline() {
    let (bus, clock) = (local(), ManualClock::new());
    let (waiter, _agent) = agent(&bus, "me", &clock);
    let (sender, _sender) = agent(&bus, "other", &clock);
    let taken: Vec<_> =
        std::iter::from_fn(|| waiter.try_acquire("gpt-4o", &Cost::new()).ok()).collect();
    let mut acquire =
        Box::pin(waiter.acquire("gpt-4o", &Cost::new()).max_wait(Duration::from_secs(90)));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(acquire.as_mut().poll(&mut context).is_pending(), "a minute is within the deadline");
    sender.feedback().rate_limited("gpt-4o", &refusal(600).until_reset());
    assert!(acquire.as_mut().poll(&mut context).is_ready(), "ten minutes are not");
    drop(taken);
}

#[test]
fn messages_accept_any_field_order_and_key() {
    let (bus, clock) = (local(), ManualClock::new());
    let (limiter, agent) = agent(&bus, "me", &clock);
    let key = "gpt-\u{1F600} \"quoted\"\n";
    let (sender, _sender) = self::agent(&bus, "other", &clock);
    sender.feedback().reduce(key, "received 429 response");
    assert_eq!((agent.status().applied, capacity(&limiter, key)), (1, 250));
    let message = br#"{"timestamp":"2026-01-01T00:00:00Z","new_capacity":9,"agent_id":"x","resource":"gpt-4o"}"#;
    bus.publish("ratelimit.capacity", message);
    assert_eq!(capacity(&limiter, "gpt-4o"), 9);
}

#[test]
fn keys_with_shared_buckets_are_reduced_and_paused_together() {
    let (bus, clock) = (local(), ManualClock::new());
    let pool = || {
        let quota = Quota::new().rpm(500).shared();
        let builder = Limiter::builder().clock(clock.clone()).quota("claude-*", quota.clone());
        builder.quota_regex(Regex::new("^o[0-9]$").unwrap(), quota).build().unwrap()
    };
    let (here, there) = (pool(), pool());
    Agent::join(&here, Arc::clone(&bus), "here").unwrap();
    Agent::join(&there, bus, "there").unwrap();
    for (refused, other) in [("claude-opus", "claude-haiku"), ("o1", "o3")] {
        here.feedback().rate_limited(refused, &refusal(5));
        assert_eq!(capacity(&there, other), 250, "{other}");
        assert!(there.try_acquire(other, &Cost::new()).is_err(), "{other}");
    }
}

#[test]
fn panicking_subscriber_does_not_affect_other_subscribers() {
    let bus = LocalBus::new();
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    bus.subscribe("s", Arc::new(|_: &[u8]| panic!("on purpose")));
    bus.subscribe(
        "s",
        Arc::new(move |_: &[u8]| {
            counter.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Continue(())
        }),
    );
    bus.publish("s", b"one");
    bus.publish("s", b"two");
    assert_eq!(received.load(Ordering::Relaxed), 2);
}
