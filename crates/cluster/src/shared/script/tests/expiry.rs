use paceline_limiter::quota::{Algorithm, Dimension};
use redis::Commands;

use super::super::{Operation, Outcome, RetryAfter};
use super::fixture::{Fixture, RESERVE, S, refused};

#[test]
fn expired_reservation_counts_as_used() {
    let mut fixture = Fixture::tokens();
    assert_eq!(fixture.reserve(1, 60), Outcome::Done);
    assert_eq!(fixture.level(), (0, 60));
    fixture.now += 10 * S - 1;
    assert_eq!(fixture.level(), (0, 60));
    fixture.now += 1;
    assert_eq!(fixture.level(), (60, 0));
    assert_eq!(fixture.settle(1, 5), Outcome::Unknown);
    fixture.now += S;
    assert_eq!(fixture.level(), (59, 0));
}

#[test]
fn renewed_reservation_stays_held() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 60);
    fixture.now += 6 * S;
    assert_eq!(
        fixture.call(Operation::Renew { ttl: 10 * S, restores: false }, 1, &[0]).outcome,
        Outcome::Done
    );
    assert_eq!(
        fixture.call(Operation::Renew { ttl: 10 * S, restores: false }, 2, &[0]).outcome,
        Outcome::Unknown
    );
    fixture.now += 10 * S - 1;
    assert_eq!(fixture.level(), (0, 60));
    // The script looks for expired reservations twice a second.
    fixture.now += S / 2;
    assert_eq!(fixture.level(), (60, 0));
}

#[test]
fn late_settlement_before_expiry_sweep_counts_actual_usage() {
    let mut fixture = Fixture::tokens();
    fixture.reserve(1, 60);
    fixture.now += 20 * S;
    assert_eq!(fixture.settle(1, 5), Outcome::Done);
    assert_eq!(fixture.level(), (5, 0));
}

#[test]
fn concurrency_slot_is_freed_at_expiry() {
    let mut fixture = Fixture::with(&[(Dimension::Concurrency, 1, Algorithm::SlidingWindow)]);
    assert_eq!(fixture.reserve(1, 1), Outcome::Done);
    assert_eq!(fixture.reserve(2, 1), refused(RetryAfter::Unknown));
    fixture.now += 10 * S;
    assert_eq!(fixture.reserve(2, 1), Outcome::Done);
}

#[test]
fn every_algorithm_counts_expired_reservations() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::ClockWindow] {
        let mut fixture = Fixture::with(&[(Dimension::Tokens, 100, algorithm)]);
        assert_eq!(fixture.reserve(1, 60), Outcome::Done);
        assert_eq!(fixture.reserve(2, 30), Outcome::Done);
        assert_eq!(fixture.settle(2, 10), Outcome::Done);
        fixture.now += 10 * S;
        assert_eq!(fixture.level(), (70, 0), "{algorithm:?}");
        assert_eq!(fixture.reserve(3, 31), refused(RetryAfter::In(90 * S)), "{algorithm:?}");
    }
}

#[test]
fn key_expires_when_no_usage_remains() {
    let mut fixture = Fixture::requests();
    fixture.call(RESERVE, 1, &[100]);
    fixture.call(Operation::Settle { unsure: false }, 1, &[100]);
    let left: u64 = fixture.server.connection().pttl("{a}k").unwrap();
    assert!((1_000_000..1_100_000).contains(&left), "{left}");
}

#[test]
fn key_outlives_the_largest_held_amount() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::ClockWindow] {
        let mut fixture = Fixture::with(&[(Dimension::Tokens, 1_000, algorithm)]);
        fixture.reserve(1, 1);
        fixture.settle(1, 1);
        for id in 2..4 {
            fixture.reserve(id, 450);
        }
        for id in 2..4 {
            fixture.release(id);
        }
        let left: u64 = fixture.server.connection().pttl("{a}k").unwrap();
        assert!(left >= 900_000, "{algorithm:?}: {left}");
    }
}
