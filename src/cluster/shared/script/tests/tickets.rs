use super::super::{Operation, Outcome, RetryAfter, ServerTime};
use super::fixture::{Fixture, S, refused};

const HOUR: u64 = 3_600 * S;
const WAITS: Operation = Operation::Reserve { ttl: 10 * S, waits: true };

fn wait(fixture: &mut Fixture, id: u8, amount: u64) -> Outcome {
    fixture.call(WAITS, id, &[amount]).outcome
}

/// Returns a key with 40 free requests, and a waiter for 80.
fn key_with_waiter() -> Fixture {
    let mut fixture = Fixture::requests();
    assert_eq!(fixture.reserve(1, 60), Outcome::Done);
    assert_eq!(wait(&mut fixture, 2, 80), refused(RetryAfter::In(40 * S)));
    fixture
}

#[test]
fn later_request_never_overtakes_an_earlier_waiter() {
    let mut fixture = key_with_waiter();
    assert_eq!(fixture.reserve(3, 20), refused(RetryAfter::In(S * 60)));
    assert_eq!(wait(&mut fixture, 3, 21), refused(RetryAfter::Unknown));
    fixture.now += 20 * S;
    assert_eq!(wait(&mut fixture, 2, 80), refused(RetryAfter::In(20 * S)));
    fixture.now += 20 * S;
    assert_eq!(fixture.reserve(4, 1), refused(RetryAfter::In(S)));
    assert_eq!(wait(&mut fixture, 2, 80), Outcome::Done);
    assert_eq!(fixture.reserve(4, 1), refused(RetryAfter::In(S)));
}

#[test]
fn released_waiter_frees_the_amount_for_the_next() {
    let mut fixture = key_with_waiter();
    assert_eq!(fixture.release(2), Outcome::Unknown);
    assert_eq!(fixture.reserve(3, 40), Outcome::Done);
}

#[test]
fn waiter_no_longer_retrying_loses_ticket() {
    let mut fixture = key_with_waiter();
    // A ticket lasts at most 30.25 s without a retry.
    fixture.now += 30 * S + S / 4 - 1;
    assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
    fixture.now += 1;
    assert_eq!(fixture.reserve(3, 40), Outcome::Done);
}

#[test]
fn request_without_wait_gets_no_ticket() {
    let mut fixture = Fixture::requests();
    fixture.reserve(1, 60);
    assert_eq!(fixture.reserve(2, 80), refused(RetryAfter::In(40 * S)));
    assert_eq!(fixture.reserve(3, 40), Outcome::Done);
}

#[test]
fn ticket_lifetime_survives_a_clock_change() {
    for (back, forward) in [(HOUR, 0), (0, HOUR)] {
        let mut fixture = key_with_waiter();
        fixture.now = fixture.now - back + forward;
        fixture.time = ServerTime { expected: fixture.now, jump: forward };
        assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
        fixture.time = ServerTime::default();
        fixture.now += 30 * S + S / 4 - 1;
        assert!(matches!(fixture.reserve(3, 40), Outcome::Refused { .. }));
        fixture.now += 1;
        assert_eq!(fixture.reserve(3, 40), Outcome::Done);
    }
}
