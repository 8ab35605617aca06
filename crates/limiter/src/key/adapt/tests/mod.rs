//! Cool-downs, reduction, recovery and the comparison with headers, without a limiter.

use std::time::Duration;

use paceline_testing::full::full_or;
use proptest::prelude::*;

use super::*;
use crate::engine::Wait;
use crate::quota::{Algorithm, Margin, Quota, Window};
use crate::stated::LimitReading;

mod headers;
mod recovery;

const S: Duration = Duration::from_secs(1);
const START: Timestamp = Timestamp::from_unix_secs(1_000_000);

fn limits_with(quota: &Quota, margin: Margin) -> Limits {
    Limits::new(Arc::new(Plan::new(quota, None, margin, 0, 1)))
}

fn limits(quota: &Quota) -> Limits {
    limits_with(quota, Margin::NONE)
}

fn buckets(quota: Quota) -> Limits {
    limits(&quota.with_algorithm(Algorithm::TokenBucket))
}

fn pace(reduction: Reduction) -> Pace {
    reduction.pace().unwrap().unwrap()
}

/// Reduces to half, and recovers by a tenth every 30 seconds.
fn steady() -> Pace {
    pace(Reduction::new().spread(Duration::ZERO))
}

fn refuse(
    adapt: &mut Adapt,
    limits: &mut Limits,
    refusal: &RateLimited,
    now: Timestamp,
) -> Reaction {
    adapt.refuse(limits, refusal, KeyPace { pace: Some(steady()), spread_part: 0 }, now)
}

fn seconds(n: u64) -> RateLimited {
    RateLimited::new(Some(Duration::from_secs(n)))
}

fn amounts(limits: &Limits) -> Vec<u64> {
    limits.plan.rules.iter().map(|rule| rule.limit().amount()).collect()
}

fn used(limits: &Limits, now: Timestamp) -> Vec<u64> {
    limits.iter().map(|(rule, bucket)| bucket.level(rule, now).used).collect()
}

fn requests(n: u64) -> Cost {
    Cost::new().requests(n)
}

fn per_hour(amount: u64) -> Quota {
    Quota::new().limit(Limit::new(Dimension::Requests, amount, Window::HOUR).unwrap())
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(50_000, 2_000))
    }
}

// Cool-downs.

#[test]
fn refusal_with_delay_cools_down_at_least_for_delay() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100)));
    assert!(adapt.is_open(START) && adapt.is_idle(START));
    let until = refuse(&mut adapt, &mut limits, &seconds(20), START).until.unwrap();
    assert_eq!((until, adapt.cooling_until), (START + 20 * S, START + 20 * S));
    assert_eq!(adapt.sends_at(START), until);
    assert!(!adapt.is_open(until - Duration::from_nanos(1)));
    assert_eq!(refuse(&mut adapt, &mut limits, &seconds(3), START + S).until, Some(until));
    assert_eq!(adapt.sends_at(until + Duration::from_nanos(5)), until + Duration::from_nanos(5));
}

#[test]
fn refusals_without_delay_double_up_to_64_seconds() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(1_000_000)));
    let (mut now, mut delays) = (START, Vec::new());
    for _ in 0..8 {
        // Three refusals of requests in flight at the same time count once.
        let refusal = RateLimited::new(None).sent_at(now);
        let untils = [0; 3].map(|_| refuse(&mut adapt, &mut limits, &refusal, now).until.unwrap());
        assert_eq!(untils, [untils[0]; 3]);
        delays.push((untils[0] - now).as_secs());
        now = untils[0] + Duration::from_nanos(1);
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 64]);
}

#[test]
fn refusal_after_a_recovery_step_restarts_at_one_second() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(1_000)));
    let mut now = START;
    for _ in 0..3 {
        now = refuse(&mut adapt, &mut limits, &RateLimited::new(None).sent_at(now), now)
            .until
            .unwrap()
            + Duration::from_nanos(1);
    }
    now = adapt.recovers_at().unwrap();
    assert!(!adapt.recover(&mut limits, now));
    let until =
        refuse(&mut adapt, &mut limits, &RateLimited::new(None).sent_at(now), now).until.unwrap();
    assert_eq!(until - now, S);
}

#[test]
fn cool_down_with_spread_ends_later_by_random_part() {
    let pace = pace(Reduction::new().spread(Duration::from_nanos(65_536 * 1_000)));
    let end = |delay: Duration, part: u64| {
        let key_pace = KeyPace { pace: Some(pace), spread_part: part };
        let until = Adapt::default().cool_down(delay, key_pace, START);
        (until - START - delay).as_nanos()
    };
    assert_eq!([end(S, 0), end(S, 1), end(S, 65_535)], [0, 1_000, 65_535_000]);
    // The spread is at most an eighth of the delay.
    assert_eq!(end(Duration::from_nanos(8 * 65_536), 65_535), 65_535);
    let no_pace = KeyPace { pace: None, spread_part: 65_535 };
    assert_eq!(Adapt::default().cool_down(S, no_pace, START), START + S);
}

#[test]
fn refusal_until_reset_cools_down_for_one_minute_at_most() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100).rpd(1_000)));
    let reaction = refuse(&mut adapt, &mut limits, &RateLimited::new(None).until_reset(), START);
    assert_eq!((reaction.until.unwrap(), reaction.is_reduced), (START + 60 * S, false));
    assert_eq!((amounts(&limits), adapt.is_reduced()), (vec![100, 1_000], false));
    assert_eq!(used(&limits, reaction.until.unwrap()), [0, 0]);
}

#[test]
fn refusal_without_pace_only_cools_down() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100)));
    let no_pace = KeyPace { pace: None, spread_part: 65_535 };
    let reaction = adapt.refuse(&mut limits, &seconds(5), no_pace, START);
    assert_eq!((reaction.until.unwrap(), reaction.is_reduced), (START + 5 * S, false));
    assert_eq!((amounts(&limits), used(&limits, reaction.until.unwrap())), (vec![100], vec![0]));
}

#[test]
fn cool_down_until_an_earlier_time_is_ignored() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100).rpd(50)));
    assert!(!adapt.cool_down_until(&mut limits, START, None, START));
    assert!(adapt.cool_down_until(&mut limits, START + 9 * S, None, START));
    assert!(!adapt.cool_down_until(&mut limits, START + 8 * S, None, START));
    assert_eq!((adapt.cooling_until, used(&limits, START + 9 * S)), (START + 9 * S, vec![100, 0]));
}

// Reduction.

#[test]
fn refusal_halves_rates_and_leaves_days() {
    let quota = Quota::new().rpm(101).tpm(1_000).rpd(1_000).concurrency(8);
    let (mut adapt, mut limits) = (Adapt::default(), buckets(quota));
    assert!(refuse(&mut adapt, &mut limits, &seconds(1), START).is_reduced);
    assert_eq!(amounts(&limits), [50, 500, 1_000, 4]);
    assert_eq!(adapt.full_plan(&limits).rules[0].limit().amount(), 101);
}

#[test]
fn refusal_naming_rate_reduces_only_named_rate() {
    let named = |quota: Quota, dimension: Dimension| {
        let (mut adapt, mut limits) = (Adapt::default(), buckets(quota));
        let refusal = seconds(1).dimension(dimension);
        let until = refuse(&mut adapt, &mut limits, &refusal, START).until.unwrap();
        (amounts(&limits), used(&limits, until))
    };
    let quota = || Quota::new().rpm(100).tpm(1_000);
    assert_eq!(named(quota(), Dimension::Tokens), (vec![100, 500], vec![0, 500]));
    // All rates, if the key has no rate of that dimension.
    assert_eq!(named(quota(), Dimension::InputTokens), (vec![50, 500], vec![50, 500]));
    let daily = Quota::new().tpm(1_000).rpd(100);
    assert_eq!(named(daily, Dimension::Requests), (vec![500, 100], vec![500, 0]));
}

#[test]
fn reduction_of_a_limit_of_one_keeps_one() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(1)));
    assert!(!refuse(&mut adapt, &mut limits, &seconds(1), START).is_reduced);
    assert_eq!((amounts(&limits), adapt.is_reduced()), (vec![1], false));
}

#[test]
fn refusals_of_requests_in_flight_together_reduce_once() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100)));
    let mut reduced = |sent_at: Option<Timestamp>, now: Timestamp| {
        let refusal = RateLimited { sent_at, ..seconds(1) };
        refuse(&mut adapt, &mut limits, &refusal, now).is_reduced
    };
    assert!(reduced(Some(START - 5 * S), START));
    assert!(!reduced(Some(START - 3 * S), START + S));
    assert!(!reduced(Some(START), START + 20 * S));
    // Taken to be sent ten seconds ago if the time is unknown.
    assert!(!reduced(None, START + 10 * S));
    assert!(reduced(None, START + 10 * S + Duration::from_nanos(1)));
    assert!(reduced(Some(START + 10 * S + Duration::from_nanos(2)), START + 11 * S));
    assert_eq!(amounts(&limits), [12]);
}

#[test]
fn reduction_twice_within_ten_seconds_reduces_once() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(100)));
    let times = [START, START + 10 * S, START + 10 * S + Duration::from_nanos(1)];
    let reduced = times.map(|now| adapt.reduce(&mut limits, steady(), now));
    assert_eq!((reduced, amounts(&limits)), ([true, false, true], vec![25]));
    assert!(
        adapt.is_open(START) || adapt.cooling_until == Timestamp::UNIX_EPOCH,
        "no refusal, no cool-down"
    );
}

#[test]
fn buckets_are_empty_at_the_end_of_a_cool_down() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(120)));
    let until = refuse(&mut adapt, &mut limits, &seconds(20), START).until.unwrap();
    let short = adapt.check(&limits, &requests(1), until).unwrap_err();
    assert_eq!(short.wait, Wait::At(until + S), "at 60 a minute");
    assert_eq!(adapt.recovers_at(), Some(until + 30 * S));
}

#[test]
fn reduction_during_a_cool_down_starts_at_the_end() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(120)));
    let until = refuse(&mut adapt, &mut limits, &seconds(600), START).until.unwrap();
    assert!(adapt.reduce(&mut limits, steady(), START + 11 * S));
    let short = adapt.check(&limits, &requests(1), until).unwrap_err();
    assert_eq!(short.wait, Wait::At(until + 2 * S), "at 30 a minute");
    assert_eq!(adapt.recovers_at(), Some(until + 30 * S));
}

#[test]
fn longer_cool_down_of_requests_in_flight_delays_recovery() {
    let (mut adapt, mut limits) = (Adapt::default(), buckets(Quota::new().rpm(120)));
    refuse(&mut adapt, &mut limits, &seconds(1), START);
    assert_eq!(adapt.recovers_at(), Some(START + 31 * S));
    let until = refuse(&mut adapt, &mut limits, &seconds(40), START + S).until.unwrap();
    assert_eq!(adapt.recovers_at(), Some(until + 30 * S));
    assert_eq!(used(&limits, until), [60]);
}

#[test]
fn update_of_another_process_lowers_rates_in_proportion() {
    let quota = Quota::new().rpm(100).tpm(1_000).rpd(1_000);
    let (mut adapt, mut limits) = (Adapt::default(), buckets(quota));
    assert_eq!(capacity(&limits), 100);
    adapt.follow_update(&mut limits, steady(), 40, START - S, START);
    assert_eq!(amounts(&limits), [40, 400, 1_000]);
    let stale =
        [START - S - Duration::from_nanos(1), START - S, START - S + Duration::from_nanos(1)]
            .map(|sent| adapt.is_update_stale(sent));
    assert_eq!(stale, [true, true, false]);
    // Never above the current amounts.
    adapt.follow_update(&mut limits, steady(), 80, START, START + S);
    assert_eq!(amounts(&limits), [40, 400, 1_000]);
    assert!(adapt.is_update_stale(START));
}

#[test]
fn capacity_of_limits_is_the_first_rate_else_concurrency() {
    let of = |quota: Quota| capacity(&limits(&quota));
    assert_eq!(of(Quota::new().rpd(9).concurrency(4).tpm(500).rpm(7)), 500);
    assert_eq!(of(Quota::new().rpd(9).concurrency(4)), 4);
    assert_eq!(of(Quota::new().rpd(9)), 0);
}
