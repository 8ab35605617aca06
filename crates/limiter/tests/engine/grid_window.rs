use paceline_limiter::Timestamp;
use std::time::Duration;

use paceline_limiter::engine::{
    Bucket, Rule, Saved, Wait, charge, check, release, reserve, settle,
};
use paceline_limiter::quota::{
    Algorithm, Calendar, Cost, Dimension, Limit, Margin, Period, Quota, SettleAt, Window,
};

use super::{S, at, fresh, rules};

const HOUR: u64 = 3_600 * S;

fn nanos(time: &str) -> u64 {
    time.parse::<jiff::Timestamp>().unwrap().as_nanosecond().try_into().unwrap()
}

/// Returns rules of this many requests per day in a zone, with fresh buckets.
fn per_day(amount: u64, zone: &str, margin: Margin, settle: SettleAt) -> (Vec<Rule>, Vec<Bucket>) {
    let day = Calendar::new(Period::Day, zone).unwrap();
    let quota = Quota::new().on_calendar(Dimension::Requests, amount, &day);
    let rules = rules(&quota, Algorithm::TokenBucket, margin, settle);
    let buckets = fresh(&rules);
    (rules, buckets)
}

fn pacific(amount: u64, margin: Margin) -> (Vec<Rule>, Vec<Bucket>) {
    per_day(amount, "America/Los_Angeles", margin, SettleAt::Send)
}

fn wait(rules: &[Rule], buckets: &[Bucket], now: Timestamp) -> Option<Wait> {
    check(rules, buckets, &Cost::new(), now).err().map(|short| short.wait)
}

#[test]
fn day_ends_at_local_midnight_across_clock_changes() {
    let (rules, mut buckets) = pacific(2, Margin::NONE);
    // 2027-03-14 has 23 hours, 2027-11-07 has 25.
    for (noon, midnight) in [
        ("2027-03-14T19:00:00Z", "2027-03-15T07:00:00Z"),
        ("2027-03-15T19:00:00Z", "2027-03-16T07:00:00Z"),
        ("2027-11-07T20:00:00Z", "2027-11-08T08:00:00Z"),
    ] {
        let (noon, midnight) = (nanos(noon), nanos(midnight));
        reserve(&rules, &mut buckets, &Cost::new(), at(noon)).unwrap();
        reserve(&rules, &mut buckets, &Cost::new(), at(noon + 1)).unwrap();
        assert_eq!(wait(&rules, &buckets, at(noon + 1)), Some(Wait::At(at(midnight))));
        let level = buckets[0].level(&rules[0], at(midnight - 1));
        assert_eq!((level.used, level.available, level.fresh_at), (2, 0, at(midnight)));
        assert_eq!(wait(&rules, &buckets, at(midnight)), None);
        assert!(buckets[0].is_fresh(&rules[0], at(midnight)));
    }
}

#[test]
fn clock_window_of_a_minute_starts_on_the_minute() {
    let quota = Quota::new().rpm(1);
    let rules = rules(&quota, Algorithm::ClockWindow, Margin::NONE, SettleAt::Send);
    let mut buckets = fresh(&rules);
    reserve(&rules, &mut buckets, &Cost::new(), at(119 * S)).unwrap();
    assert_eq!(wait(&rules, &buckets, at(119 * S)), Some(Wait::At(at(120 * S))));
    reserve(&rules, &mut buckets, &Cost::new(), at(120 * S)).unwrap();
    assert_eq!(wait(&rules, &buckets, at(121 * S)), Some(Wait::At(at(180 * S))));
}

#[test]
fn calendar_window_is_closed_for_margin_around_boundary() {
    let (rules, buckets) = pacific(2, Margin::default());
    let midnight = nanos("2027-03-15T07:00:00Z");
    let (closes, opens) = (midnight - S / 2, midnight + S / 2);
    assert_eq!(wait(&rules, &buckets, at(closes - 1)), None);
    for now in [closes, midnight - 1, midnight, opens - 1] {
        assert_eq!(wait(&rules, &buckets, at(now)), Some(Wait::At(at(opens))), "at {now}");
    }
    assert_eq!(wait(&rules, &buckets, at(opens)), None);
}

#[test]
fn clock_window_shorter_than_margin_becomes_sliding() {
    let window = Window::new(Duration::from_secs(2)).unwrap();
    let limit = Limit::new(Dimension::Requests, 1, window).unwrap();
    let quota = Quota::new().limit(limit);
    let rules = rules(&quota, Algorithm::ClockWindow, Margin::default(), SettleAt::Send);
    let mut buckets = fresh(&rules);
    reserve(&rules, &mut buckets, &Cost::new(), at(100 * S)).unwrap();
    assert_eq!(wait(&rules, &buckets, at(101 * S)), Some(Wait::At(at(102 * S + S / 2))));
}

#[test]
fn day_with_large_margin_slides_over_longest_day() {
    let (rules, mut buckets) = pacific(1, lag(2 * HOUR));
    let noon = nanos("2027-03-14T19:00:00Z");
    reserve(&rules, &mut buckets, &Cost::new(), at(noon)).unwrap();
    assert_eq!(wait(&rules, &buckets, at(noon)), Some(Wait::At(at(noon + 27 * HOUR))));
}

#[test]
fn wait_for_several_clock_windows_ends_when_all_are_open() {
    let seconds =
        |s| Limit::new(Dimension::Requests, 1, Window::new(Duration::from_secs(s)).unwrap());
    let quota = Quota::new().limit(seconds(60).unwrap()).limit(seconds(40).unwrap());
    let margin = lag(2 * S);
    let rules = rules(&quota, Algorithm::ClockWindow, margin, SettleAt::Send);
    let buckets = fresh(&rules);
    // One window is closed from 58 s to 62 s, the other from 78 s to 82 s, both from 118 s to 122
    // s.
    assert_eq!(wait(&rules, &buckets, at(58 * S)), Some(Wait::At(at(62 * S))));
    assert_eq!(wait(&rules, &buckets, at(118 * S)), Some(Wait::At(at(122 * S))));
    let mut used = buckets.clone();
    reserve(&rules, &mut used, &Cost::new(), at(70 * S)).unwrap();
    assert_eq!(wait(&rules, &used, at(70 * S)), Some(Wait::At(at(122 * S))));
}

#[test]
fn wait_for_many_clock_windows_is_found() {
    let window = |i: u64| Window::new(Duration::from_nanos(S + 7 * i)).unwrap();
    let limit = |i| Limit::new(Dimension::Requests, 1, window(i)).unwrap();
    let quota = (0..24_u64).map(limit).fold(Quota::new(), Quota::limit);
    let margin = lag(S / 16);
    let rules = rules(&quota, Algorithm::ClockWindow, margin, SettleAt::Send);
    let mut buckets = fresh(&rules);
    charge(&rules, &mut buckets, &Cost::new(), at(1_800_000_000 * S));
    let Some(Wait::At(time)) = wait(&rules, &buckets, at(1_800_000_000 * S)) else {
        panic!("the wait has no time")
    };
    assert!(time > at(1_800_000_000 * S));
}

#[test]
fn request_in_flight_over_midnight_counts_on_both_days() {
    let (rules, mut buckets) = per_day(10, "America/Los_Angeles", Margin::NONE, SettleAt::End);
    let midnight = nanos("2027-03-15T07:00:00Z");
    let four = Cost::new().requests(4);
    reserve(&rules, &mut buckets, &four, at(midnight - HOUR)).unwrap();
    charge(&rules, &mut buckets, &Cost::new().requests(6), at(midnight - HOUR));
    assert_eq!(wait(&rules, &buckets, at(midnight - 1)), Some(Wait::At(at(midnight))));
    // Yesterday's six no longer count; the four in flight may count today.
    let level = buckets[0].level(&rules[0], at(midnight));
    assert_eq!((level.used, level.held, level.available), (0, 4, 6));
    let seven = Cost::new().requests(7);
    let short = check(&rules, &buckets, &seven, at(midnight)).unwrap_err();
    assert_eq!(short.wait, Wait::Unknown);
    let actual = Cost::new().requests(3);
    settle(&rules, &mut buckets, at(midnight - HOUR), &four, &actual, at(midnight + HOUR));
    let level = buckets[0].level(&rules[0], at(midnight + HOUR));
    assert_eq!((level.used, level.held, level.available), (3, 0, 7));
}

#[test]
fn correction_applies_to_day_of_send_time() {
    let (rules, mut buckets) = pacific(10, Margin::NONE);
    let midnight = nanos("2027-03-15T07:00:00Z");
    let (eight, two) = (Cost::new().requests(8), Cost::new().requests(2));
    reserve(&rules, &mut buckets, &eight, at(midnight - 1)).unwrap();
    reserve(&rules, &mut buckets, &eight, at(midnight)).unwrap();
    settle(&rules, &mut buckets, at(midnight - 1), &eight, &two, at(midnight + 1));
    release(&rules, &mut buckets, at(midnight - 1), &eight, at(midnight + 1));
    assert_eq!(buckets[0].level(&rules[0], at(midnight + 1)).used, 8);
    settle(&rules, &mut buckets, at(midnight), &eight, &two, at(midnight + 1));
    assert_eq!(buckets[0].level(&rules[0], at(midnight + 1)).used, 2);
    release(&rules, &mut buckets, at(midnight), &two, at(midnight + 1));
    assert!(buckets[0].is_fresh(&rules[0], at(midnight + 1)));
}

#[test]
fn saved_usage_counts_only_on_day_of_saving() {
    let (rules, mut buckets) = pacific(10, Margin::NONE);
    let midnight = nanos("2027-03-15T07:00:00Z");
    charge(&rules, &mut buckets, &Cost::new().requests(3), at(midnight - HOUR));
    charge(&rules, &mut buckets, &Cost::new().requests(4), at(midnight - 1));
    let saved = buckets[0].save(&rules[0], at(midnight - 1));
    assert_eq!(saved, Saved { taken: vec![(at(midnight - 1), 7)], held: 0 });
    let used = |now| {
        let mut restored = [Bucket::new(&rules[0])];
        charge(&rules, &mut restored, &Cost::new(), now);
        restored[0].absorb(&rules[0], &saved, now);
        restored[0].level(&rules[0], now).used
    };
    assert_eq!([used(at(midnight - 1)), used(at(midnight)), used(at(midnight + 1))], [8, 1, 1]);
    assert!(buckets[0].save(&rules[0], at(midnight)).taken.is_empty());
}

#[test]
fn changed_calendar_limit_keeps_used_and_held_amounts() {
    let (old, mut buckets) = per_day(10, "Asia/Kolkata", Margin::NONE, SettleAt::End);
    let (new, _) = per_day(5, "Asia/Kolkata", Margin::NONE, SettleAt::End);
    let noon = nanos("2027-03-15T07:00:00Z");
    charge(&old, &mut buckets, &Cost::new().requests(2), at(noon));
    reserve(&old, &mut buckets, &Cost::new().requests(2), at(noon)).unwrap();
    let carried = buckets[0].carry(&old[0], &new[0], at(noon + HOUR));
    let level = carried.level(&new[0], at(noon + HOUR));
    assert_eq!((level.used, level.held, level.available), (2, 2, 1));
    assert_eq!(level.fresh_at, at(nanos("2027-03-15T18:30:00Z")));
}

#[test]
fn changed_algorithm_keeps_usage_of_the_day() {
    let (old, mut buckets) = pacific(10, Margin::NONE);
    let noon = nanos("2027-03-15T20:00:00Z");
    charge(&old, &mut buckets, &Cost::new().requests(4), at(noon));
    let new = rules(&Quota::new().rpd(10), Algorithm::SlidingWindow, Margin::NONE, SettleAt::Send);
    let sliding = buckets[0].carry(&old[0], &new[0], at(noon + HOUR));
    assert_eq!(sliding.level(&new[0], at(noon + 24 * HOUR - 1)).used, 4);
    assert_eq!(sliding.level(&new[0], at(noon + 24 * HOUR)).used, 0);
    let back = sliding.carry(&new[0], &old[0], at(noon + 2 * HOUR));
    assert_eq!(back.level(&old[0], at(noon + 2 * HOUR)).used, 4);
}

#[test]
fn clock_a_day_ahead_rebased_keeps_usage_on_true_day() {
    let (rules, mut buckets) = pacific(10, Margin::NONE);
    let noon = nanos("2027-03-16T20:00:00Z");
    charge(&rules, &mut buckets, &Cost::new().requests(4), at(noon));
    buckets[0].rebase(Duration::from_nanos(24 * HOUR));
    let level = buckets[0].level(&rules[0], at(noon - 24 * HOUR));
    assert_eq!((level.used, level.fresh_at), (4, at(nanos("2027-03-16T07:00:00Z"))));
    assert!(buckets[0].is_fresh(&rules[0], at(noon)));
}

#[test]
fn usage_of_tomorrow_counts_until_tomorrow_ends() {
    let (rules, mut buckets) = pacific(1, Margin::NONE);
    charge(&rules, &mut buckets, &Cost::new(), at(nanos("2027-03-17T20:00:00Z")));
    let today = nanos("2027-03-15T20:00:00Z");
    assert_eq!(
        wait(&rules, &buckets, at(today)),
        Some(Wait::At(at(nanos("2027-03-18T07:00:00Z"))))
    );
}

/// Returns a margin with this lag, and without a percentage.
fn lag(nanos: u64) -> Margin {
    Margin::new(0, Duration::from_nanos(nanos)).unwrap()
}
