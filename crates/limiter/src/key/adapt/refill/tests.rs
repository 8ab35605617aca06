//! Evidence that limits are buckets, in headers of several kinds of providers.

use super::*;
use crate::key::adapt::Adapt;
use crate::stated::LimitReading;

const LIMIT: u64 = 1_200;
const START: Timestamp = Timestamp::from_unix_secs(1_000_000);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn reading(remaining: u64, reset: Option<Duration>) -> LimitReading {
    LimitReading {
        dimension: Dimension::Requests,
        window: Window::MINUTE,
        limit: Some(LIMIT),
        remaining: Some(remaining),
        reset,
        granularity: 1,
    }
}

/// Returns the time at which the answers to requests every 100 ms show a bucket, in half a minute. `state`
/// returns the remaining amount and the reset at a time, after this number of requests. Answers take a second.
fn shown_after(state: impl Fn(u64, u64) -> (u64, Option<u64>)) -> Option<u64> {
    let mut adapt = Adapt::default();
    let times = (0..300).map(|number| number * 100);
    let mut numbered = (1..).zip(times);
    let shown = numbered.find(|&(number, at)| {
        let (remaining, reset) = state(at, number);
        let reading = [reading(remaining, reset.map(millis))];
        adapt.shows_refill(&reading, START + millis(at), START + millis(at + 1_000))
    });
    shown.map(|(_, at)| at)
}

#[test]
fn remaining_requests_that_rise_show_a_bucket() {
    // 20 a second refill, 10 are sent, and the bucket was nearly empty at the start.
    let shown = shown_after(|at, number| (100 + at / 50 - number, None));
    assert_eq!(shown, Some(3_000), "the first answer, then three sent after the last answer");
}

#[test]
fn remaining_requests_that_jump_show_no_bucket() {
    let per_window = |length: u64| {
        move |at: u64, number: u64| {
            let started = at / length * length;
            (LIMIT - number.saturating_sub(started / 100), None)
        }
    };
    // The window ends once within the time, or has another length than assumed.
    assert_eq!(shown_after(per_window(20_000)), None);
    assert_eq!(shown_after(per_window(5_000)), None);
}

#[test]
fn remaining_requests_of_sliding_window_show_no_bucket() {
    assert_eq!(shown_after(|_, number| (LIMIT - number, None)), None);
    // The requests of an earlier minute leave the window one second after the other, faster than a bucket refills.
    let leaving = |at: u64, number: u64| (200 + at / 1_000 * 100 - number, None);
    assert_eq!(shown_after(leaving), None);
}

#[test]
fn remaining_requests_after_half_a_window_show_nothing() {
    let mut adapt = Adapt::default();
    let shows = |adapt: &mut Adapt, at: u64| {
        let reading = [reading(100 + at, None)];
        adapt.shows_refill(&reading, START + Duration::from_secs(at), START + millis(at * 1_000))
    };
    assert!(!shows(&mut adapt, 0));
    assert!((30..60).all(|at| !shows(&mut adapt, at)));
}

#[test]
fn resets_in_proportion_to_usage_show_a_bucket() {
    // The bucket holds 400, for requests that come faster than it refills.
    let left = |at: u64, number: u64| (400 + at / 50).saturating_sub(4 * number);
    let full_in = |left: u64| (400 - left) * 60_000 / LIMIT;
    let shown = shown_after(|at, number| (left(at, number), Some(full_in(left(at, number)))));
    assert!(shown.is_some_and(|at| at < 2_000), "{shown:?}");
    let coarse =
        |at: u64, number: u64| (left(at, number), Some(full_in(left(at, number)) / 4_000 * 4_000));
    assert_eq!(shown_after(coarse), None, "too coarse to tell");
}

#[test]
fn resets_of_windows_show_no_bucket() {
    let left = |number: u64| LIMIT - 4 * number;
    assert_eq!(shown_after(|at, number| (left(number), Some(60_000 - at))), None);
    assert_eq!(shown_after(|_, number| (left(number), Some(60_000))), None);
    // The end of the window, which is as far away as a bucket of this level needs, but only once.
    assert_eq!(shown_after(|at, number| (left(number), Some(2_000 + 200 * number - at))), None);
}

#[test]
fn tokens_that_rise_show_no_bucket() {
    let mut adapt = Adapt::default();
    let shows = |adapt: &mut Adapt, at: u64| {
        let reading =
            [LimitReading { dimension: Dimension::Tokens, ..reading(100 + 10 * at, None) }];
        adapt.shows_refill(&reading, START + Duration::from_secs(at), START + millis(at * 1_000))
    };
    assert!((0..29).all(|at| !shows(&mut adapt, at)), "reserved tokens may be returned");
}
