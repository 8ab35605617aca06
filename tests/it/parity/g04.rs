//! Recorded usage counts once.

use paceline::limiter::Code;
use paceline::quota::{Cost, Quota, Usage};

use super::rig::{held, manual, tokens, used};

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

#[test]
fn g04_recorded_request_counts_in_every_limit() {
    let quota = Quota::new().rpm(10).tpm(1_000).rpd(100).itpm(1_000).otpm(1_000).tpd(5_000);
    let (limiter, _) = manual(quota);
    limiter.record("k", &usage(120, 30));
    limiter.record("k", &usage(80, 0));
    assert_eq!(used(&limiter, "k"), [2, 230, 2, 200, 30, 230]);
}

#[test]
fn g04_record_is_never_refused() {
    let (limiter, _) = manual(Quota::new().rpm(2).tpm(100));
    (0..5).for_each(|_| limiter.record("k", &usage(50, 50)));
    assert_eq!(used(&limiter, "k"), [5, 500]);
    assert_eq!(limiter.decide("k", &Cost::new()).code, Code::RpmExceeded);
}

#[test]
fn g04_actual_usage_replaces_the_estimate() {
    let (limiter, _) = manual(Quota::new().rpm(10).tpm(1_000).rpd(100));
    for (estimate, actual) in [(600, 250), (100, 100), (50, 130), (200, 0)] {
        let before = used(&limiter, "k");
        let permit = limiter.try_acquire("k", &tokens(estimate)).unwrap();
        permit.settle(&tokens(actual));
        let expected = [before[0] + 1, before[1] + actual, before[2] + 1];
        assert_eq!(used(&limiter, "k"), expected);
        assert_eq!(held(&limiter, "k"), [0, 0, 0]);
    }
}

#[test]
fn g04_record_leaves_reservations_in_flight_unchanged() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let permit = limiter.try_acquire("k", &tokens(600)).unwrap();
    limiter.record("k", &usage(100, 0));
    assert_eq!((used(&limiter, "k"), held(&limiter, "k")), (vec![100], vec![600]));
    permit.settle(&tokens(450));
    assert_eq!((used(&limiter, "k"), held(&limiter, "k")), (vec![550], vec![0]));
}
