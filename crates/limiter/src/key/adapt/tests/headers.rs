//! The comparison of remaining amounts with those of headers.

use super::*;
use crate::timestamp::Timestamp;

const NANOSECOND: Duration = Duration::from_nanos(1);

pub(super) fn reading(dimension: Dimension, remaining: u64) -> LimitReading {
    LimitReading {
        dimension,
        window: Window::MINUTE,
        limit: None,
        remaining: Some(remaining),
        reset: None,
        granularity: 1,
    }
}

/// Returns limits that are compared with headers since `START`.
fn traced(quota: &Quota, margin: Margin) -> (Adapt, Limits) {
    let (mut adapt, mut limits) = (Adapt::default(), limits_with(quota, margin));
    let first = [reading(Dimension::Requests, 1), reading(Dimension::Tokens, 1)];
    let by_others = adapt.observe(&mut limits, &first, START, START).by_others;
    assert!(by_others.is_empty() && adapt.has_trace(), "the first response only starts a trace");
    assert!(limits.is_fresh(START));
    (adapt, limits)
}

/// Returns the use by others that `reading` proves after `cost` was reserved at `START + S`.
fn proven(quota: &Quota, margin: Margin, cost: &Cost, reading: LimitReading) -> Option<u64> {
    let (mut adapt, mut limits) = traced(quota, margin);
    limits.commit(cost, START + S);
    adapt.note(&limits, START + S);
    let before = used(&limits, START + S);
    let by_others = adapt.observe(&mut limits, &[reading], START + S, START + S).by_others;
    let after = used(&limits, START + S);
    let taken: u64 = after.iter().zip(&before).map(|(after, before)| after - before).sum();
    assert_eq!(taken, by_others.iter().map(|(_, amount)| amount).sum::<u64>());
    by_others.first().map(|(_, amount)| *amount)
}

#[test]
fn use_by_others_below_rounding_is_proven() {
    let quota = Quota::new().rpm(100).with_algorithm(Algorithm::SlidingWindow);
    let of = |left| proven(&quota, Margin::NONE, &requests(1), reading(Dimension::Requests, left));
    assert_eq!([100, 99, 98].map(of), [None; 3]);
    assert_eq!([97, 90, 0].map(of), [Some(1), Some(8), Some(98)]);
    let coarse = |left| LimitReading { granularity: 10, ..reading(Dimension::Requests, left) };
    let of = |left| proven(&quota, Margin::NONE, &requests(1), coarse(left));
    assert_eq!((of(89), of(88)), (None, Some(1)));
}

#[test]
fn use_by_others_below_the_amount_held_is_proven() {
    let quota = Quota::new().tpm(1_000).with_algorithm(Algorithm::SlidingWindow);
    let tokens = Cost::new().tokens(10);
    let of = |left| proven(&quota, Margin::NONE, &tokens, reading(Dimension::Tokens, left));
    assert_eq!((of(979), of(978)), (None, Some(1)));
}

#[test]
fn use_by_others_below_half_of_the_margin_is_proven() {
    let quota = Quota::new().rpm(1_000).with_algorithm(Algorithm::TokenBucket);
    let margin = Margin::new(2, std::time::Duration::ZERO).unwrap();
    let of = |left| proven(&quota, margin, &requests(100), reading(Dimension::Requests, left));
    // 900 are left; the margin allows for 10 and for rounding.
    assert_eq!((of(889), of(888)), (None, Some(11)));
}

#[test]
fn reading_without_limit_or_contradictory_is_ignored() {
    let quota = Quota::new().rpm(100).concurrency(5).with_algorithm(Algorithm::SlidingWindow);
    let of = |reading| proven(&quota, Margin::NONE, &requests(1), reading);
    let low = || reading(Dimension::Requests, 50);
    assert_eq!(of(LimitReading { limit: Some(50), ..low() }), Some(48));
    assert_eq!(of(LimitReading { limit: Some(49), ..low() }), None);
    assert_eq!(of(LimitReading { remaining: None, ..low() }), None);
    assert_eq!(of(LimitReading { window: Window::HOUR, ..low() }), None);
    assert_eq!(of(LimitReading { dimension: Dimension::Tokens, ..low() }), None);
    assert_eq!(of(LimitReading { dimension: Dimension::Concurrency, ..low() }), None);
}

#[test]
fn reading_is_compared_with_the_least_since_the_request() {
    let quota = Quota::new().rpm(100).with_algorithm(Algorithm::SlidingWindow);
    let (mut adapt, mut limits) = traced(&quota, Margin::NONE);
    for at in [1, 2] {
        limits.commit(&requests(10), START + Duration::from_secs(at));
        adapt.note(&limits, START + Duration::from_secs(at));
    }
    let now = START + 61 * S;
    adapt.note(&limits, now);
    let mut proves = |granted_at: Timestamp, left: u64| {
        let readings = [reading(Dimension::Requests, left)];
        !adapt.observe(&mut limits, &readings, granted_at, now).by_others.is_empty()
    };
    assert!(!proves(START + S, 79), "the least amount left was 80");
    assert!(!proves(now, 89), "90 are left since the first request expired");
    assert!(!proves(START - Duration::from_nanos(1), 0), "granted before the comparison started");
    assert!(proves(now, 88));
}

#[test]
fn comparison_after_a_reduction_restarts() {
    let quota = Quota::new().rpm(100).with_algorithm(Algorithm::SlidingWindow);
    let (mut adapt, mut limits) = traced(&quota, Margin::NONE);
    let now = START + 5 * S;
    adapt.reduce(&mut limits, steady(), now);
    let low = [reading(Dimension::Requests, 0)];
    assert!(
        adapt.observe(&mut limits, &low, now - Duration::from_nanos(1), now).by_others.is_empty()
    );
    assert_eq!(adapt.observe(&mut limits, &low, now, now).by_others[..], [(0, 49)]);
}

#[test]
fn lower_limit_of_the_provider_is_reported_once() {
    let (mut adapt, mut limits) = (Adapt::default(), limits(&Quota::new().rpm(100).tpm(500)));
    let stated = |limit| LimitReading { limit, ..reading(Dimension::Requests, 0) };
    let mut report = |adapt: &mut Adapt, limit: Option<u64>| {
        let lower = adapt.observe(&mut limits, &[stated(limit)], START, START).lower_limits;
        lower.iter().map(|lower| (lower.ours, lower.theirs)).collect::<Vec<_>>()
    };
    assert_eq!(report(&mut adapt, None), []);
    assert_eq!(report(&mut adapt, Some(100)), []);
    assert_eq!(report(&mut adapt, Some(0)), []);
    assert_eq!(report(&mut adapt, Some(60)), [(100, 60)]);
    assert_eq!(report(&mut adapt, Some(60)), []);
    let mut other = self::limits(&Quota::new().rpm(100));
    adapt.restart_trace(&other, START);
    let lower = adapt.observe(&mut other, &[stated(Some(60))], START, START).lower_limits;
    assert!(lower.is_empty(), "the limit was reported before the trace restarted");
}

proptest! {
    #![proptest_config(config())]

    /// The result is exact for few notes, and never above the least amount left for many.
    #[test]
    fn trace_returns_the_least_since_a_noted_time(
        mut notes in proptest::collection::vec((0..3_u64, 0..100_u64), 1..80),
        is_rising in any::<bool>(),
        back in 0..500_u64,
    ) {
        if is_rising {
            notes.sort_by_key(|(_, left)| *left);
        }
        let mut limits = limits(&Quota::new().concurrency(100));
        let (mut trace, mut now) = (Trace::new(1, START), START);
        let mut noted: Vec<(Timestamp, u64)> = Vec::new();
        for (after, left) in notes {
            now += Duration::from_nanos(after);
            limits.buckets[0].drop_hold(100);
            limits.buckets[0].hold(100 - left);
            trace.note(&limits, now);
            noted.push((now, left));
        }
        let back = Duration::from_nanos(back);
        trace.rebase(back);
        for &(time, _) in &noted {
            let since = noted.iter().filter(|(at, _)| *at >= time);
            let least = since.map(|(_, left)| *left).min();
            let low = trace.lowest_since(0, time - back);
            prop_assert!(low.is_some() && low <= least, "{:?} {:?}", low, least);
            prop_assert!(noted.len() > 32 || low == least, "{:?} {:?}", low, least);
        }
        prop_assert_eq!(trace.lowest_since(0, START - back - NANOSECOND), None);
    }
}
