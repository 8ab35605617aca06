//! Updates of other processes, which are applied or ignored.

use paceline::Timestamp;
use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{Agent, Bus, LocalBus};
use paceline::limiter::{CapacityUpdate, Event, Ignored, Limiter, ManualClock, Reduction};
use paceline::quota::Quota;

use super::rig::{S, buckets, builder};

fn limiter() -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let quota = buckets(Quota::new().rpm(100).tpm(1_000).rpd(500));
    let builder = builder().reduction(Reduction::new()).quota("k", quota).clock(clock.clone());
    (builder.build().unwrap(), clock)
}

fn update(limiter: &Limiter, agent: &str, new_capacity: u64) -> CapacityUpdate {
    CapacityUpdate::new("k", agent, new_capacity, limiter.now())
        .with_reason("received 429 response")
}

fn amounts(limiter: &Limiter) -> Vec<u64> {
    limiter.stats("k").limits.iter().map(|limit| limit.limit).collect()
}

#[test]
fn s07_remote_reduction_reduces_in_proportion() {
    let (limiter, _) = limiter();
    let mut events = limiter.subscribe();
    assert_eq!(limiter.feedback().apply(&update(&limiter, "other", 30), "me"), Ok(30));
    assert_eq!(amounts(&limiter), [30, 300, 500]);
    let event = Event::Reduced {
        key: "k".into(),
        capacity: 30,
        reason: "received 429 response".into(),
        agent: Some("other".into()),
    };
    assert_eq!(events.try_recv().unwrap(), event);
}

#[test]
fn s07_ignored_update_changes_no_limit() {
    let (limiter, _) = limiter();
    let mut events = limiter.subscribe();
    let unknown = CapacityUpdate::new("x", "other", 5, limiter.now());
    let cases = [
        (update(&limiter, "me", 30), Ignored::Own),
        (update(&limiter, "other", 0), Ignored::Zero),
        (update(&limiter, "other", 100), Ignored::NotLower),
        (update(&limiter, "other", u64::MAX), Ignored::NotLower),
        (unknown, Ignored::Unknown),
    ];
    for (update, reason) in cases {
        assert_eq!(limiter.feedback().apply(&update, "me"), Err(reason), "{update:?}");
    }
    assert_eq!(amounts(&limiter), [100, 1_000, 500]);
    assert!(events.try_recv().is_err());
    assert_eq!(limiter.state().keys(), ["k"]);
}

#[test]
fn s07_update_not_below_current_limit_is_ignored() {
    let (limiter, clock) = limiter();
    limiter.feedback().apply(&update(&limiter, "other", 30), "me").unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        limiter.feedback().apply(&update(&limiter, "other", 60), "me"),
        Err(Ignored::NotLower)
    );
    assert_eq!(limiter.feedback().apply(&update(&limiter, "other", 29), "me"), Ok(29));
}

#[test]
fn s07_stale_update_is_ignored() {
    let (limiter, clock) = limiter();
    clock.advance(Duration::from_secs(60));
    let at = |timestamp| CapacityUpdate::new("k", "other", 30, timestamp);
    let now = limiter.now();
    for timestamp in [Timestamp::UNIX_EPOCH, now - 31 * S, now + 31 * S, Timestamp::MAX] {
        assert_eq!(limiter.feedback().apply(&at(timestamp), "me"), Err(Ignored::Stale));
    }
    assert_eq!(limiter.feedback().apply(&at(now - 5 * S), "me"), Ok(30));
    let older = CapacityUpdate::new("k", "other", 20, now - 6 * S);
    assert_eq!(limiter.feedback().apply(&older, "me"), Err(Ignored::Stale));
}

#[test]
fn s07_malformed_message_is_ignored_and_go_format_applied() {
    let (limiter, _) = limiter();
    let bus = Arc::new(LocalBus::new());
    let agent = Agent::join(&limiter, bus.clone(), "me").unwrap();
    let mut malformed = 0;
    for message in ["", "null", "{", r#"{"resource":"k"}"#, r#"{"new_capacity":"30"}"#] {
        bus.publish("ratelimit.capacity", message.as_bytes());
        malformed += 1;
        assert_eq!((agent.status().malformed, agent.status().applied), (malformed, 0));
    }
    assert_eq!(amounts(&limiter), [100, 1_000, 500]);
    let go = br#"{"resource":"k","agent_id":"go","new_capacity":30,"reason":"429","timestamp":"2026-01-01T01:00:00.123456789+01:00"}"#;
    bus.publish("ratelimit.capacity", go);
    assert_eq!(amounts(&limiter), [30, 300, 500]);
}
