use tollgate::engine::{Margin, Wait, reserve, settle};
use tollgate::quota::{Algorithm, Cost, Quota, SettleAt};

use super::{S, fresh, rules};

#[test]
fn thirty_nine_a_second_polled_every_50_ms_gives_39_a_second() {
    let limit = tollgate::quota::Limit::new(
        tollgate::quota::Dimension::Requests,
        39,
        tollgate::quota::Window::SECOND,
    );
    let quota = Quota::new().limit(limit.unwrap());
    let rules = rules(&quota, Algorithm::TOKEN_BUCKET, Margin::NONE, SettleAt::Send);
    let mut buckets = fresh(&rules);
    let mut granted = 0;
    for tick in 0..=200 {
        let now = 100 * S + tick * (S / 20);
        while reserve(&rules, &mut buckets, &Cost::new(), now).is_ok() {
            granted += 1;
        }
    }
    assert_eq!(granted, 39 + 390);
}

#[test]
fn the_margin_never_turns_fits_into_never() {
    let quota = Quota::new().tpm(60_000);
    let rules = rules(&quota, Algorithm::TOKEN_BUCKET, Margin::default(), SettleAt::Send);
    let mut buckets = fresh(&rules);
    let whole = Cost::new().tokens(60_000);
    // 2 % of 60,000 tokens is 1,200 tokens, which take 1.2 s to refill.
    assert!(reserve(&rules, &mut buckets, &whole, 9 * S).is_ok(), "untouched since 1970");
    let wait = reserve(&rules, &mut buckets, &whole, 9 * S).unwrap_err().wait;
    assert_eq!(wait, Wait::At(9 * S + 61_200_000_000));
    let over = Cost::new().tokens(60_001);
    assert_eq!(reserve(&rules, &mut buckets, &over, 9 * S).unwrap_err().wait, Wait::Never);
}

#[test]
fn a_hold_costs_capacity_until_it_is_settled_and_the_rest_is_never_refunded_twice() {
    let quota = Quota::new().tpm(60_000);
    let rules = rules(&quota, Algorithm::TOKEN_BUCKET, Margin::NONE, SettleAt::End);
    let mut buckets = fresh(&rules);
    let big = Cost::new().tokens(50_000);
    reserve(&rules, &mut buckets, &big, S).unwrap();
    assert_eq!(reserve(&rules, &mut buckets, &big, S).unwrap_err().wait, Wait::Unknown);
    let actual = Cost::new().tokens(20_000);
    settle(&rules, &mut buckets, (S, &big), &actual, 11 * S);
    let level = buckets[0].level(&rules[0], 11 * S);
    assert_eq!((level.used, level.held, level.available), (20_000, 0, 40_000));
}
