//! Limits of each model; 0 is unlimited.

use std::time::Duration;

use paceline::limiter::{Code, ManualClock};
use paceline::quota::{Cost, Dimension, Quota};

use super::rig::{admitted, builder, limit, manual, tokens};

#[test]
fn g01_each_model_has_separate_rpm_tpm_and_rpd() {
    let limiter = builder()
        .quota("small", Quota::new().rpm(3))
        .quota("wide", Quota::new().tpm(100))
        .quota("daily", Quota::new().rpd(5))
        .clock(ManualClock::new())
        .build()
        .unwrap();
    for (model, granted, code) in [
        ("small", 3, Code::RpmExceeded),
        ("wide", 4, Code::TpmExceeded),
        ("daily", 5, Code::RpdExceeded),
    ] {
        assert_eq!(admitted(&limiter, model, &tokens(25), 100), granted, "{model}");
        assert_eq!(limiter.try_acquire(model, &tokens(25)).unwrap_err().code, code);
    }
}

#[test]
fn g01_itpm_otpm_tpd_concurrency_and_custom_are_limited() {
    let pages = Dimension::custom("pages");
    let week = Duration::from_secs(7 * 86_400);
    let cost = || Cost::new().tokens(1).input_tokens(1).output_tokens(1);
    let pages = Quota::new().limit(limit(pages, 4, week));
    let cases = [
        (Quota::new().itpm(4), cost(), Code::ItpmExceeded),
        (Quota::new().otpm(4), cost(), Code::OtpmExceeded),
        (Quota::new().tpd(4), cost(), Code::TpdExceeded),
        (Quota::new().concurrency(4), cost(), Code::ConcurrencyExceeded),
        (pages, cost().custom("pages", 1), Code::LimitExceeded),
    ];
    for (quota, cost, code) in cases {
        let (limiter, _) = manual(quota);
        let _in_flight: Vec<_> = (0..4).map(|_| limiter.try_acquire("k", &cost).unwrap()).collect();
        assert_eq!(limiter.try_acquire("k", &cost).unwrap_err().code, code);
    }
}

#[test]
fn g01_zero_is_unlimited_in_one_dimension_only() {
    let (limiter, _) = manual(Quota::new().rpm(0).tpm(50).rpd(0));
    assert_eq!(admitted(&limiter, "k", &Cost::new(), 1_000), 1_000);
    assert_eq!(admitted(&limiter, "k", &tokens(10), 1_000), 5);
    let (limiter, _) = manual(Quota::new().rpm(0).tpm(0).rpd(0));
    assert_eq!(limiter.decide("k", &tokens(u64::MAX)).code, Code::Unlimited);
    assert_eq!(admitted(&limiter, "k", &tokens(u64::MAX), 1_000), 1_000);
}
