//! Decisions without a reservation, and reservations that count from then on.

use paceline::limiter::Code;
use paceline::quota::{Cost, Quota};

use super::rig::{held, manual, tokens, used};

#[test]
fn g02_decide_does_not_reserve() {
    let (limiter, _) = manual(Quota::new().rpm(1).tpm(100));
    for _ in 0..100 {
        assert!(limiter.decide("k", &tokens(100)).is_allowed());
        assert!(!limiter.decide("k", &tokens(101)).is_allowed());
    }
    assert_eq!((used(&limiter, "k"), held(&limiter, "k")), (vec![0, 0], vec![0, 0]));
    limiter.try_acquire("k", &tokens(10)).unwrap().settle(&tokens(10));
    assert!(!limiter.decide("k", &tokens(1)).is_allowed());
}

#[test]
fn g02_decide_and_acquire_agree() {
    let (limiter, _) = manual(Quota::new().rpm(3).tpm(100).concurrency(2));
    let mut in_flight = Vec::new();
    for cost in [60, 50, 40, 1, 101] {
        let decision = limiter.decide("k", &tokens(cost));
        match limiter.try_acquire("k", &tokens(cost)) {
            Ok(permit) => {
                assert_eq!(decision.code, Code::Ok);
                in_flight.push(permit);
            }
            Err(refused) => {
                assert_eq!((decision.code, decision.wait), (refused.code, Some(refused.wait)));
                assert_eq!(decision.dimension, refused.dimension);
            }
        }
    }
    assert_eq!(in_flight.len(), 2);
}

#[test]
fn g02_requests_in_flight_count_before_settlement() {
    let (limiter, _) = manual(Quota::new().rpm(10));
    let in_flight: Vec<_> =
        (0..100).filter_map(|_| limiter.try_acquire("k", &Cost::new()).ok()).collect();
    assert_eq!(in_flight.len(), 10);

    let (limiter, _) = manual(Quota::new().tpm(100));
    let first = limiter.try_acquire("k", &tokens(40)).unwrap();
    let second = limiter.try_acquire("k", &tokens(40)).unwrap();
    assert_eq!(limiter.try_acquire("k", &tokens(40)).unwrap_err().code, Code::TpmExceeded);
    assert!(!limiter.decide("k", &tokens(40)).is_allowed());
    // The unused rest is available to the next request.
    first.settle(&tokens(25));
    second.release();
    assert!(limiter.decide("k", &tokens(75)).is_allowed());
    assert!(!limiter.decide("k", &tokens(76)).is_allowed());
}
