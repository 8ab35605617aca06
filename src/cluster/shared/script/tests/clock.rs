use super::super::{RetryAfter, ServerTime, Verdict};
use super::fixture::{Fixture, RESERVE, S, refused};
use crate::quota::{Algorithm, Dimension};

const HOUR: u64 = 3_600 * S;

#[test]
fn call_more_than_a_second_late_is_stale() {
    let mut fixture = Fixture::requests();
    fixture.time = ServerTime { expected: fixture.now - S - 1, jump: 0 };
    let answer = fixture.ask(RESERVE, 1, &[10]);
    assert_eq!((answer.verdict, answer.time), (Verdict::Stale, fixture.now));
    assert_eq!(fixture.level(), (0, 0));
    fixture.time.expected += 1;
    assert_eq!(fixture.reserve(1, 10), Verdict::Done);
}

#[test]
fn clock_set_back_keeps_waits() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 100);
        fixture.now += S / 2;
        let before = fixture.reserve(2, 1);
        assert!(matches!(before, Verdict::Refused { wait: RetryAfter::In(_), .. }));
        fixture.now -= HOUR;
        assert_eq!(fixture.reserve(2, 1), back(before, algorithm), "{algorithm:?}");
    }
}

/// The clock advanced half a second after the last write.
fn back(before: Verdict, _: Algorithm) -> Verdict {
    match before {
        Verdict::Refused { part, rule, wait: RetryAfter::In(wait) } => {
            Verdict::Refused { part, rule, wait: RetryAfter::In(wait + S / 2) }
        }
        other => other,
    }
}

#[test]
fn clock_slightly_back_uses_the_latest_time() {
    let mut fixture = Fixture::requests();
    fixture.reserve(1, 100);
    fixture.now -= S;
    let answer = fixture.ask(RESERVE, 2, &[1]);
    assert_eq!((answer.verdict, answer.time), (refused(RetryAfter::In(S)), fixture.now + S));
}

#[test]
fn clock_set_forward_keeps_waits_if_reported_repeatedly() {
    for algorithm in ALGORITHMS {
        let mut fixture = Fixture::with(&[(Dimension::Requests, 100, algorithm)]);
        fixture.reserve(1, 100);
        let before = fixture.reserve(2, 1);
        fixture.time = ServerTime { expected: fixture.now, jump: 0 };
        fixture.now += HOUR;
        assert_eq!(fixture.reserve(2, 1), Verdict::Stale);
        fixture.time = ServerTime { expected: fixture.now, jump: HOUR };
        for _ in 0..3 {
            assert_eq!(fixture.reserve(2, 1), before, "{algorithm:?}");
        }
        fixture.now += 100 * S;
        assert_eq!(fixture.reserve(2, 1), Verdict::Done);
    }
}

#[test]
fn clock_set_forward_prolongs_reservations() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 60);
    fixture.now += HOUR;
    fixture.time = ServerTime { expected: fixture.now, jump: HOUR };
    assert_eq!(fixture.reserve(2, 1), Verdict::Done);
    assert_eq!(fixture.level(), (0, 61));
    fixture.now += 10 * S;
    assert_eq!(fixture.level(), (61, 0));
}

/// Clock windows follow the clock, so they are left out.
const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
