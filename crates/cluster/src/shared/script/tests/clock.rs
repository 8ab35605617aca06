use paceline_limiter::quota::{Algorithm, Dimension};
use smallvec::smallvec;

use super::super::{Outcome, RetryAfter, ServerTime};
use super::fixture::{Fixture, RESERVE, S, refused};
use crate::shared::server_clock::Jump;

const HOUR: u64 = 3_600 * S;

#[test]
fn call_more_than_a_second_late_is_stale() {
    let mut fixture = Fixture::requests();
    fixture.time = ServerTime { expected: fixture.now - S - 1, ..ServerTime::default() };
    let response = fixture.call(RESERVE, 1, &[10]);
    assert_eq!((response.outcome, response.time), (Outcome::Stale, fixture.now));
    assert_eq!(fixture.level(), (0, 0));
    fixture.time.expected += 1;
    assert_eq!(fixture.reserve(1, 10), Outcome::Done);
}

#[test]
fn clock_set_back_keeps_waits() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 100);
        fixture.now += S / 2;
        let before = fixture.reserve(2, 1);
        assert!(matches!(before, Outcome::Refused { wait: RetryAfter::In(_), .. }));
        fixture.now -= HOUR;
        assert_eq!(fixture.reserve(2, 1), half_second_longer(before), "{algorithm:?}");
    }
}

/// Returns a refusal with half a second more to wait: the time between the last write and the change
/// of the clock.
fn half_second_longer(refusal: Outcome) -> Outcome {
    match refusal {
        Outcome::Refused { part, rule, wait: RetryAfter::In(wait) } => {
            Outcome::Refused { part, rule, wait: RetryAfter::In(wait + S / 2) }
        }
        other => other,
    }
}

#[test]
fn clock_set_back_slightly_uses_the_latest_time() {
    let mut fixture = Fixture::requests();
    fixture.reserve(1, 100);
    fixture.now -= S;
    let response = fixture.call(RESERVE, 2, &[1]);
    assert_eq!((response.outcome, response.time), (refused(RetryAfter::In(S)), fixture.now + S));
}

#[test]
fn clock_set_forward_keeps_waits_if_reported_repeatedly() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 100);
        let before = fixture.reserve(2, 1);
        fixture.time = ServerTime { expected: fixture.now, ..ServerTime::default() };
        fixture.now += HOUR;
        assert_eq!(fixture.reserve(2, 1), Outcome::Stale);
        fixture.time = set_forward(fixture.now);
        for _ in 0..3 {
            assert_eq!(fixture.reserve(2, 1), before, "{algorithm:?}");
        }
        (fixture.now, fixture.time.expected) = (fixture.now + 100 * S, fixture.now + 100 * S);
        assert_eq!(fixture.reserve(2, 1), Outcome::Done);
    }
}

#[test]
fn clock_set_forward_prolongs_reservations() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 60);
    fixture.now += HOUR;
    fixture.time = set_forward(fixture.now);
    assert_eq!(fixture.reserve(2, 1), Outcome::Done);
    assert_eq!(fixture.level(), (0, 61));
    fixture.now += 10 * S;
    assert_eq!(fixture.level(), (61, 0));
}

/// Returns the time after the clock was set forward by an hour.
fn set_forward(now: u64) -> ServerTime {
    ServerTime { expected: now, jumps: smallvec![Jump { at: now, by: HOUR }] }
}

/// Clock windows are left out, since they follow the clock.
const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
