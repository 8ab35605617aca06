use paceline_limiter::Timestamp;
use paceline_limiter::engine::{Wait, release, reserve, settle};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, SettleAt};

use super::{S, at, fresh, rules};

#[test]
fn limit_of_39_per_second_polled_every_50_ms_grants_39() {
    let quota = Quota::new().limit(Limit::per_second(Dimension::Requests, 39));
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send);
    let mut buckets = fresh(&rules);
    let mut granted = 0;
    for tick in 0..=200 {
        let now = 100 * S + tick * (S / 20);
        while reserve(&rules, &mut buckets, &Cost::new(), at(now)).is_ok() {
            granted += 1;
        }
    }
    assert_eq!(granted, 39 + 390);
}

#[test]
fn margin_never_makes_a_fitting_cost_impossible() {
    let quota = Quota::new().tpm(60_000);
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::default(), SettleAt::Send);
    let mut buckets = fresh(&rules);
    let whole = Cost::new().tokens(60_000);
    // 2 % of 60,000 tokens is 1,200 tokens, which take 1.2 s to refill.
    assert!(reserve(&rules, &mut buckets, &whole, at(9 * S)).is_ok(), "untouched since 1970");
    let wait = reserve(&rules, &mut buckets, &whole, at(9 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(9 * S + 61_200_000_000)));
    let over = Cost::new().tokens(60_001);
    assert_eq!(reserve(&rules, &mut buckets, &over, at(9 * S)).unwrap_err().wait, Wait::Never);
}

#[test]
fn hold_uses_capacity_until_settled_and_refunds_once() {
    let quota = Quota::new().tpm(60_000);
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::NONE, SettleAt::End);
    let mut buckets = fresh(&rules);
    let big = Cost::new().tokens(50_000);
    reserve(&rules, &mut buckets, &big, at(S)).unwrap();
    assert_eq!(reserve(&rules, &mut buckets, &big, at(S)).unwrap_err().wait, Wait::Unknown);
    let actual = Cost::new().tokens(20_000);
    settle(&rules, &mut buckets, at(S), &big, &actual, at(11 * S));
    let level = buckets[0].level(&rules[0], at(11 * S));
    assert_eq!((level.used, level.held, level.available), (20_000, 0, 40_000));
}

#[test]
fn burst_smaller_than_margin_lowers_rate() {
    let limit = Limit::per_minute(Dimension::Requests, 600).map(|limit| limit.with_burst(1));
    let quota = Quota::new().limit(limit);
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::default(), SettleAt::Send);
    let (mut buckets, mut now, mut sent) = (fresh(&rules), 100 * S, Vec::new());
    while sent.len() < 4 {
        match reserve(&rules, &mut buckets, &Cost::new(), at(now)).map_err(|s| s.wait) {
            Err(Wait::At(time)) => now = time.as_nanos(),
            answer => {
                answer.unwrap();
                sent.push(now - 100 * S);
            }
        }
    }
    // 100 ms for the refill, and 500 ms in which the previous request may still be in flight.
    assert_eq!(sent, [0, 6 * S / 10, 12 * S / 10, 18 * S / 10]);
}

#[test]
fn usage_above_reservation_becomes_debt() {
    let quota = Quota::new().tpm(60);
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send);
    let mut buckets = fresh(&rules);
    let (estimate, actual) = (Cost::new().tokens(50), Cost::new().tokens(100));
    reserve(&rules, &mut buckets, &estimate, at(100 * S)).unwrap();
    settle(&rules, &mut buckets, at(100 * S), &estimate, &actual, at(110 * S));
    // 10 seconds refilled 10 tokens, so that 90 of 60 are missing.
    let level = buckets[0].level(&rules[0], at(110 * S));
    assert_eq!((level.used, level.available, level.fresh_at), (90, 0, at(200 * S)));
    let one = Cost::new().tokens(1);
    let wait = reserve(&rules, &mut buckets, &one, at(110 * S)).unwrap_err().wait;
    assert_eq!(wait, Wait::At(at(141 * S)));
}

#[test]
fn release_refunds_no_more_than_the_net_effect() {
    let quota = Quota::new().tpm(60);
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::NONE, SettleAt::Send);
    let mut buckets = fresh(&rules);
    let (lost, kept) = (Cost::new().tokens(30), Cost::new().tokens(20));
    reserve(&rules, &mut buckets, &lost, at(100 * S)).unwrap();
    reserve(&rules, &mut buckets, &kept, at(120 * S)).unwrap();
    release(&rules, &mut buckets, at(100 * S), &lost, at(125 * S));
    // 25 were refilled since 100 s, possibly only because the 30 were missing.
    assert_eq!(buckets[0].level(&rules[0], at(125 * S)).used, 25 - (30 - 25));
}

#[test]
fn bucket_is_fresh_once_full_burst_needs_no_wait() {
    let quota = Quota::new().tpm(60);
    let rules = rules(&quota, Algorithm::TokenBucket, Margin::default(), SettleAt::Send);
    let mut buckets = fresh(&rules);
    assert!(buckets[0].is_fresh(&rules[0], Timestamp::UNIX_EPOCH));
    reserve(&rules, &mut buckets, &Cost::new().tokens(10), at(100 * S)).unwrap();
    // 10 s to refill, and 2 % of 60 tokens at one per second.
    assert!(!buckets[0].is_fresh(&rules[0], at(111 * S + S / 5 - 1)));
    assert!(buckets[0].is_fresh(&rules[0], at(111 * S + S / 5)));
}
