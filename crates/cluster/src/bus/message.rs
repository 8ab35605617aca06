//! The JSON messages of the bus, in the format of go-ratelimit's `DistributedLimiter`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{CapacityUpdate, CoolDown, LearnedLimit, LearnedUpdate};
use paceline_limiter::quota::Dimension;
use paceline_limiter::seam;

/// The subject of capacity updates.
pub(super) const CAPACITY: &str = "ratelimit.capacity";

/// The subject of cool-downs.
pub(super) const COOL_DOWN: &str = "ratelimit.cooldown";

/// The subject of measured limits.
pub(super) const LEARNED: &str = "ratelimit.learned";

pub(super) fn write_capacity(update: &CapacityUpdate) -> Vec<u8> {
    write(&CapacityMessage {
        resource: update.resource.clone(),
        agent_id: update.agent_id.clone(),
        new_capacity: update.new_capacity.into(),
        reason: update.reason.clone(),
        timestamp: format_timestamp(update.timestamp),
    })
}

/// Returns `None` for a malformed message.
pub(super) fn read_capacity(message: &[u8]) -> Option<CapacityUpdate> {
    let CapacityMessage { resource, agent_id, new_capacity, reason, timestamp } = read(message)?;
    let (capacity, timestamp) = (parse_amount(&new_capacity)?, parse_timestamp(&timestamp)?);
    Some(
        CapacityUpdate::new(resource, agent_id, capacity, timestamp)
            .with_reason(truncate_reason(reason)),
    )
}

pub(super) fn write_cool_down(cool_down: &CoolDown) -> Vec<u8> {
    let millis = cool_down.retry_after.as_nanos().div_ceil(1_000_000);
    write(&CoolDownMessage {
        resource: cool_down.resource.clone(),
        agent_id: cool_down.agent_id.clone(),
        retry_after_ms: u64::try_from(millis).unwrap_or(u64::MAX).into(),
        reason: cool_down.reason.clone(),
        timestamp: format_timestamp(cool_down.timestamp),
    })
}

/// Returns `None` for a malformed message.
pub(super) fn read_cool_down(message: &[u8]) -> Option<CoolDown> {
    let CoolDownMessage { resource, agent_id, retry_after_ms, reason, timestamp } = read(message)?;
    let (after, timestamp) = (parse_amount(&retry_after_ms)?, parse_timestamp(&timestamp)?);
    let pause = CoolDown::new(resource, agent_id, Duration::from_millis(after), timestamp);
    Some(pause.with_reason(truncate_reason(reason)))
}

pub(super) fn write_learned(update: &LearnedUpdate) -> Vec<u8> {
    let limits = update.limits.iter().map(|limit| LimitMessage {
        dimension: limit.dimension.as_str().to_owned(),
        amount: limit.amount,
        events: limit.events,
    });
    write(&LearnedMessage {
        resource: update.resource.clone(),
        agent_id: update.agent_id.clone(),
        limits: limits.collect(),
        timestamp: format_timestamp(update.timestamp),
    })
}

/// Returns `None` for a malformed message.
pub(super) fn read_learned(message: &[u8]) -> Option<LearnedUpdate> {
    let LearnedMessage { resource, agent_id, limits, timestamp } = read(message)?;
    let timestamp = parse_timestamp(&timestamp)?;
    let limit = |LimitMessage { dimension, amount, events }: LimitMessage| {
        let known = seam::DIMENSIONS.into_iter().find(|known| known.as_str() == dimension);
        let dimension = known.unwrap_or_else(|| Dimension::custom(&dimension));
        let is_valid = amount.is_finite() && amount > 0.0;
        is_valid.then(|| LearnedLimit::new(dimension, amount, timestamp, events))
    };
    let limits: Option<Vec<_>> = limits.into_iter().map(limit).collect();
    let limits = limits.filter(|limits| limits.len() <= MAX_LIMITS)?;
    Some(LearnedUpdate::new(resource, agent_id, limits, timestamp))
}

/// A capacity update, with the field names of `CapacityUpdate` in go-ratelimit.
#[derive(Serialize, Deserialize)]
struct CapacityMessage {
    resource: String,
    agent_id: String,
    new_capacity: Number,
    #[serde(default)]
    reason: String,
    timestamp: String,
}

/// A cool-down, with its remaining time in milliseconds.
#[derive(Serialize, Deserialize)]
struct CoolDownMessage {
    resource: String,
    agent_id: String,
    retry_after_ms: Number,
    #[serde(default)]
    reason: String,
    timestamp: String,
}

/// Limits that the sender has measured.
#[derive(Serialize, Deserialize)]
struct LearnedMessage {
    resource: String,
    agent_id: String,
    limits: Vec<LimitMessage>,
    timestamp: String,
}

/// A limit: an amount per second, or for `concurrency` requests in flight.
#[derive(Serialize, Deserialize)]
struct LimitMessage {
    dimension: String,
    amount: f64,
    events: u32,
}

fn write(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("strings and numbers serialize to JSON")
}

fn read<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Option<T> {
    (message.len() <= MAX_MESSAGE_BYTES).then(|| serde_json::from_slice(message).ok()).flatten()
}

/// Converts a number to an amount. Negative integers, which Go's `int` allows, become 0.
fn parse_amount(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| number.is_i64().then_some(0))
}

/// Formats a time as RFC 3339 with nanoseconds, as Go formats `time.Time`.
fn format_timestamp(timestamp: Timestamp) -> String {
    timestamp.to_string()
}

/// Parses an RFC 3339 time with an offset from UTC. A time before the Unix epoch becomes the epoch.
fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    Some(Timestamp::from_nanos(u64::try_from(time.as_nanosecond()).unwrap_or(0)))
}

/// Truncates a reason to [`MAX_REASON_CHARS`]: it is copied into events and logs.
fn truncate_reason(reason: String) -> String {
    match reason.char_indices().nth(MAX_REASON_CHARS) {
        Some((at, _)) => reason[..at].to_owned(),
        None => reason,
    }
}

/// The maximum size of a message in bytes; longer messages count as malformed.
const MAX_MESSAGE_BYTES: usize = 64 * 1_024;

/// The maximum number of limits in a message; a request has few dimensions.
const MAX_LIMITS: usize = 16;

/// The maximum length of a reason in characters.
const MAX_REASON_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn messages_have_documented_fields_and_round_trip() {
        let update = CapacityUpdate::new("k \"\u{0}é", "a", 250, at(1_767_225_600_123_456_789));
        let update = update.with_reason("429");
        let format_timestamp = write_capacity(&update);
        let expected = r#"{"resource":"k \"\u0000é","agent_id":"a","new_capacity":250,"reason":"429","timestamp":"2026-01-01T00:00:00.123456789Z"}"#;
        assert_eq!(String::from_utf8_lossy(&format_timestamp), expected);
        assert_eq!(read_capacity(&format_timestamp), Some(update));
        let pause =
            CoolDown::new("k", "a", Duration::from_micros(1_500), at(1_767_225_600_000_000_000));
        let format_timestamp = write_cool_down(&pause);
        let expected = r#"{"resource":"k","agent_id":"a","retry_after_ms":2,"reason":"","timestamp":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(String::from_utf8_lossy(&format_timestamp), expected);
        let read = read_cool_down(&format_timestamp).unwrap();
        assert_eq!(read.retry_after, Duration::from_millis(2));
    }

    #[test]
    fn messages_from_go_are_read() {
        let text = br#"{"version":2,"resource":"gpt-4o","agent_id":"go-7","new_capacity":50,
            "reason":"received 429 response","timestamp":"2026-01-01T05:30:00.123456789+05:30",
            "tags":{"a":[1,null]}}"#;
        let update = CapacityUpdate::new("gpt-4o", "go-7", 50, at(1_767_225_600_123_456_789));
        assert_eq!(read_capacity(text), Some(update.with_reason("received 429 response")));
        let zero = br#"{"resource":"k","agent_id":"a","new_capacity":-5,"timestamp":"0001-01-01T00:00:00Z"}"#;
        assert_eq!(
            read_capacity(zero),
            Some(CapacityUpdate::new("k", "a", 0, Timestamp::UNIX_EPOCH))
        );
    }

    #[test]
    fn malformed_messages_are_rejected() {
        let of = |capacity: &str, time: &str| {
            format!(
                r#"{{"resource":"k","agent_id":"a","new_capacity":{capacity},"timestamp":{time}}}"#
            )
        };
        assert!(read_capacity(of("1", "\"2026-01-01T00:00:00Z\"").as_bytes()).is_some());
        let cases = [
            of("1", "\"yesterday\""),
            of("1", "\"2026-01-01T00:00:00\""),
            of("1", "17"),
            of("1.5", "\"2026-01-01T00:00:00Z\""),
            of("\"1\"", "\"2026-01-01T00:00:00Z\""),
            of("1e400", "\"2026-01-01T00:00:00Z\""),
            of("1", "\"2026-01-01T00:00:00Z\"") + "x",
            String::new(),
            "null".into(),
            "[]".into(),
            "[".repeat(10_000),
            format!("{}{}", of("1", "\"2026-01-01T00:00:00Z\""), " ".repeat(MAX_MESSAGE_BYTES)),
        ];
        for text in cases {
            assert_eq!(read_capacity(text.as_bytes()), None, "{text:.100}");
            assert_eq!(read_cool_down(text.as_bytes()), None, "{text:.100}");
        }
        assert_eq!(read_capacity(b"\xff\xfe"), None);
    }

    #[test]
    fn learned_limits_round_trip() {
        let now = at(1_767_225_600_000_000_000);
        let limits = vec![LearnedLimit::new(Dimension::Requests, 19.5, now, 3)];
        let update = LearnedUpdate::new("k", "a", limits, now);
        let text = write_learned(&update);
        let expected = r#"{"resource":"k","agent_id":"a","limits":[{"dimension":"requests","amount":19.5,"events":3}],"timestamp":"2026-01-01T00:00:00Z"}"#;
        assert_eq!(String::from_utf8_lossy(&text), expected);
        assert_eq!(read_learned(&text), Some(update));
        for amount in ["0", "-1", "1e400", "null"] {
            let text = expected.replace("19.5", amount);
            assert_eq!(read_learned(text.as_bytes()), None, "{amount}");
        }
    }

    #[test]
    fn long_reason_is_truncated() {
        assert_eq!(truncate_reason("é".repeat(500)), "é".repeat(MAX_REASON_CHARS));
        assert_eq!(truncate_reason("429".into()), "429");
    }
}
