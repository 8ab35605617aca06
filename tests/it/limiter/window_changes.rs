//! Limits whose window, algorithm or form changes while the limiter runs, or between two runs.

use std::time::Duration;

use paceline::limiter::{BucketSnapshot, KeySnapshot, Limiter, ManualClock};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Calendar, Cost, Dimension, Limit, Period, Quota, Window};

use super::{S, builder, tokens};
use Algorithm::{ClockWindow, SlidingWindow, TokenBucket};

const NANO: Duration = Duration::from_nanos(1);

/// Returns a quota of 60 requests per this many seconds.
fn per(seconds: u64, algorithm: Algorithm) -> Quota {
    let window = Window::new(Duration::from_secs(seconds)).unwrap();
    let limit = Limit::new(Dimension::Requests, 60, window).unwrap();
    Quota::new().limit(limit.with_algorithm(algorithm))
}

fn limiter(quota: Quota) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let limiter = builder().quota("k", quota).clock(clock.clone());
    (limiter.build().unwrap(), clock)
}

fn change(limiter: &Limiter, quota: &Quota) {
    limiter.quotas().set("k", quota).unwrap();
}

fn take(limiter: &Limiter, requests: u64) {
    let cost = Cost::new().requests(requests);
    limiter.try_acquire("k", &cost).unwrap().settle(&cost);
}

/// Takes as many requests as are admitted now, and returns their number.
fn take_all(limiter: &Limiter) -> u64 {
    let mut taken = 0;
    while limiter.try_acquire("k", &Cost::new()).is_ok() {
        taken += 1;
    }
    taken
}

fn used_and_held(limiter: &Limiter) -> (u64, u64) {
    let limit = &limiter.stats("k").limits[0];
    (limit.used, limit.held)
}

#[test]
fn window_made_longer_counts_usage_of_the_old_one() {
    let (limiter, clock) = limiter(per(4, SlidingWindow));
    assert_eq!(take_all(&limiter), 60);
    change(&limiter, &per(8, SlidingWindow));
    assert_eq!(take_all(&limiter), 0);
    clock.advance(8 * S - NANO);
    assert_eq!(take_all(&limiter), 0);
    clock.advance(NANO);
    assert_eq!(take_all(&limiter), 60);
}

#[test]
fn window_made_longer_counts_usage_that_left_the_old_one() {
    for later in [0, 1] {
        let (limiter, clock) = limiter(per(4, SlidingWindow));
        take(&limiter, 50);
        clock.advance(5 * S);
        (0..later).for_each(|_| take(&limiter, 1));
        change(&limiter, &per(8, SlidingWindow));
        assert_eq!(take_all(&limiter), 10 - later);
        clock.advance(3 * S);
        assert_eq!(take_all(&limiter), 50);
    }
}

#[test]
fn window_made_shorter_counts_what_lies_within() {
    let (limiter, clock) = limiter(per(8, SlidingWindow));
    take(&limiter, 20);
    clock.advance(5 * S);
    take(&limiter, 30);
    change(&limiter, &per(4, SlidingWindow));
    assert_eq!(take_all(&limiter), 30);
}

#[test]
fn changed_form_never_admits_the_amount_once_more() {
    for old in Algorithm::ALL {
        for (new, seconds) in Algorithm::ALL.into_iter().flat_map(|new| [(new, 60), (new, 120)]) {
            let (limiter, clock) = limiter(per(60, old));
            // Within a minute and within two minutes of the clock.
            clock.advance(31 * S);
            assert_eq!(take_all(&limiter), 60);
            clock.advance(S / 2);
            let left = take_all(&limiter);
            change(&limiter, &per(seconds, new));
            assert_eq!((left, take_all(&limiter)), (0, 0), "{old:?} to {new:?} of {seconds} s");
            clock.advance(Duration::from_secs(4 * seconds));
            assert_eq!(limiter.stats("k").limits[0].available, 60, "{old:?} to {new:?}");
        }
    }
}

#[test]
fn bucket_made_a_window_counts_what_may_have_refilled() {
    let (limiter, clock) = limiter(per(60, TokenBucket));
    assert_eq!(take_all(&limiter), 60);
    clock.advance(30 * S);
    assert_eq!(take_all(&limiter), 30);
    clock.advance(30 * S);
    // 30 more are admitted by the bucket; in the last minute, 30 were.
    change(&limiter, &per(60, SlidingWindow));
    assert_eq!(take_all(&limiter), 0);
    clock.advance(30 * S - NANO);
    let admitted = take_all(&limiter);
    assert!(admitted <= 30, "{admitted}");
    clock.advance(30 * S + NANO);
    assert_eq!(used_and_held(&limiter), (admitted, 0));
}

#[test]
fn bucket_unused_for_two_windows_leaves_all_to_a_window() {
    let (limiter, clock) = limiter(per(60, TokenBucket));
    take(&limiter, 60);
    clock.advance(120 * S);
    change(&limiter, &per(60, SlidingWindow));
    assert_eq!(take_all(&limiter), 60);
}

#[test]
fn rolling_day_made_a_calendar_day_counts_today() {
    let calendar = Calendar::new(Period::Day, "UTC").unwrap();
    let daily = Quota::new().on_calendar(Dimension::Requests, 60, &calendar);
    let rolling = Quota::new().rpd(60).with_algorithm(SlidingWindow);
    let (limiter, clock) = limiter(rolling.clone());
    let hour = 3_600 * S;
    // The clock starts at midnight.
    clock.advance(22 * hour);
    take(&limiter, 10);
    clock.advance(3 * hour);
    take(&limiter, 20);
    change(&limiter, &daily);
    assert_eq!(used_and_held(&limiter), (20, 0));
    take(&limiter, 5);
    clock.advance(hour);
    change(&limiter, &rolling);
    assert_eq!(used_and_held(&limiter), (35, 0), "with the day before");
    clock.advance(20 * hour);
    assert_eq!(used_and_held(&limiter), (25, 0));
}

#[test]
fn calendar_day_made_a_month_counts_today() {
    let on = |period| {
        Quota::new().on_calendar(Dimension::Requests, 60, &Calendar::new(period, "UTC").unwrap())
    };
    let (limiter, _) = limiter(on(Period::Day));
    take(&limiter, 40);
    change(&limiter, &on(Period::Month));
    assert_eq!(take_all(&limiter), 20);
}

#[test]
fn limit_replaced_by_a_total_counts_what_is_known() {
    let (limiter, clock) = limiter(per(60, TokenBucket));
    take(&limiter, 40);
    clock.advance(10 * S);
    change(&limiter, &Quota::new().requests_total(100));
    assert_eq!(used_and_held(&limiter), (30, 0));
}

#[test]
fn limit_added_beside_others_counts_what_is_sure() {
    for (algorithm, used) in [(SlidingWindow, 40), (TokenBucket, 30), (ClockWindow, 40)] {
        let (limiter, clock) = limiter(per(60, algorithm));
        take(&limiter, 40);
        clock.advance(10 * S);
        change(&limiter, &per(60, algorithm).rpd(1_000));
        let limits = limiter.stats("k").limits;
        assert_eq!(limits.iter().map(|limit| limit.used).collect::<Vec<_>>(), [used; 2]);
    }
}

#[test]
fn limit_that_knows_most_of_the_new_window_counts() {
    let both = per(4, TokenBucket).rpd(1_000).with_algorithm(SlidingWindow);
    let (limiter, clock) = limiter(both);
    take(&limiter, 7);
    clock.advance(S);
    // By the bucket, up to 120 may have been used.
    change(&limiter, &per(8, SlidingWindow).rpd(1_000).with_algorithm(SlidingWindow));
    assert_eq!(used_and_held(&limiter), (7, 0));
}

#[test]
fn amounts_in_flight_settle_under_the_new_window() {
    let per = |seconds| {
        let window = Window::new(Duration::from_secs(seconds)).unwrap();
        let limit = Limit::new(Dimension::Tokens, 100, window).unwrap();
        Quota::new().limit(limit.with_algorithm(SlidingWindow))
    };
    let (limiter, clock) = limiter(per(4));
    limiter.try_acquire("k", &tokens(10)).unwrap().settle(&tokens(10));
    let cost = tokens(30);
    let [less, more, unsent] = [(), (), ()].map(|()| limiter.try_acquire("k", &cost).unwrap());
    change(&limiter, &per(8));
    assert_eq!(used_and_held(&limiter), (10, 90));
    clock.advance(S);
    less.settle(&tokens(5));
    assert_eq!(used_and_held(&limiter), (15, 60));
    more.settle(&tokens(50));
    assert_eq!(used_and_held(&limiter), (65, 30));
    unsent.release();
    assert_eq!(used_and_held(&limiter), (65, 0));
    clock.advance(8 * S);
    assert_eq!(used_and_held(&limiter), (0, 0));
}

#[test]
fn amounts_charged_when_sent_are_not_given_back() {
    let clock = ManualClock::new();
    let quota = |seconds| {
        let window = Window::new(Duration::from_secs(seconds)).unwrap();
        let limit = Limit::new(Dimension::Tokens, 100, window).unwrap();
        Quota::new().limit(limit.with_algorithm(SlidingWindow))
    };
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota(4)).clock(clock.clone());
    let limiter = limiter.build().unwrap();
    let cost = tokens(20);
    let [less, more, unsent] = [(), (), ()].map(|()| limiter.try_acquire("gpt-4o", &cost).unwrap());
    let used = || limiter.stats("gpt-4o").limits[0].used;
    limiter.quotas().set("gpt-4o", &quota(8)).unwrap();
    assert_eq!(used(), 60);
    less.settle(&tokens(5));
    unsent.release();
    assert_eq!(used(), 60);
    more.settle(&tokens(50));
    assert_eq!(used(), 90);
    let newer = limiter.try_acquire("gpt-4o", &tokens(10)).unwrap();
    newer.release();
    assert_eq!(used(), 90);
}

#[test]
fn shared_quota_with_another_window_counts_usage() {
    let (limiter, _) = limiter(Quota::new());
    limiter.quotas().set("m-*", &per(4, SlidingWindow).shared()).unwrap();
    let take = |key| limiter.try_acquire(key, &Cost::new().requests(30)).is_ok();
    assert!(take("m-1") && take("m-2"));
    limiter.quotas().set("m-*", &per(8, SlidingWindow).shared()).unwrap();
    assert!(!take("m-1") && !take("m-3"));
}

#[test]
fn limits_given_with_calls_in_turn_keep_their_usage() {
    let (limiter, clock) = limiter(Quota::new().rpm(1));
    let acquire = |quota: &Quota, requests| {
        let acquire = limiter.acquire("free", &Cost::new().requests(requests)).limits(quota);
        futures_util::FutureExt::now_or_never(acquire).is_some_and(|granted| granted.is_ok())
    };
    let quotas = [per(4, SlidingWindow), per(8, SlidingWindow), per(4, TokenBucket)];
    let granted = (0..200).filter(|turn| acquire(&quotas[turn % 3], 1)).count();
    assert_eq!(granted, 60);
    // Changes of the form alone use nothing.
    for turn in 0..100 {
        clock.advance(S / 10);
        assert!(!acquire(&quotas[turn % 3], 61));
    }
    assert!(acquire(&quotas[1], 60));
}

/// Restores what a limiter with the first quota has used under the second one.
fn restarted(before: &Quota, after: &Quota, use_some: impl Fn(&Limiter, &ManualClock)) -> Limiter {
    let (first, clock) = limiter(before.clone());
    use_some(&first, &clock);
    let second = builder().quota("k", after.clone()).clock(clock).build().unwrap();
    second.state().absorb(&first.state().snapshot());
    second
}

#[test]
fn window_changed_between_two_runs_counts_usage() {
    for (from, to) in [(SlidingWindow, SlidingWindow), (TokenBucket, SlidingWindow)] {
        let limiter = restarted(&per(4, from), &per(8, to), |limiter, clock| {
            take(limiter, 50);
            clock.advance(S);
        });
        assert_eq!(take_all(&limiter), if from == TokenBucket { 25 } else { 10 }, "{from:?}");
    }
}

#[test]
fn limit_removed_between_two_runs_is_not_counted_twice() {
    let both = per(60, SlidingWindow).rpd(1_000).with_algorithm(SlidingWindow);
    let day = Quota::new().rpd(1_000).with_algorithm(SlidingWindow);
    let limiter = restarted(&both, &day, |limiter, clock| {
        for _ in 0..10 {
            take(limiter, 5);
            clock.advance(S);
        }
    });
    assert_eq!(used_and_held(&limiter), (50, 0));
}

#[test]
fn usage_of_a_window_replaced_in_an_earlier_run_counts() {
    let (limiter, clock) = limiter(per(8, SlidingWindow));
    let at = |seconds: u64| ManualClock::START + Duration::from_secs(seconds);
    clock.advance(7 * S);
    let bucket = |seconds, taken| {
        let window = Window::new(Duration::from_secs(seconds)).unwrap();
        let saved = paceline::engine::Saved { taken, held: 0 };
        BucketSnapshot::new(Dimension::Requests, window, saved)
    };
    // The window was 4 s until 5 s.
    let buckets = vec![bucket(4, vec![(at(1), 20), (at(4), 10)]), bucket(8, vec![(at(6), 5)])];
    limiter.state().absorb(&[KeySnapshot::new("k", buckets)]);
    assert_eq!(used_and_held(&limiter), (35, 0));
}

#[tokio::test(start_paused = true)]
async fn waiting_request_is_admitted_when_a_shorter_window_allows() {
    let limiter = super::paused(per(3_600, SlidingWindow));
    take(&limiter, 60);
    let waiting = limiter.acquire("k", &Cost::new());
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    tokio::time::advance(10 * S).await;
    assert!(futures_util::poll!(&mut waiting).is_pending());
    change(&limiter, &per(10, SlidingWindow));
    assert!(futures_util::poll!(&mut waiting).is_ready());
}

/// The six requests had refilled at the rate at which they were sent.
#[test]
fn request_of_a_faster_bucket_returns_what_is_missing_to_a_slower_one() {
    let per_eight = |amount| {
        let window = Window::new(8 * S).unwrap();
        let limit = Limit::new(Dimension::Requests, amount, window).unwrap();
        Quota::new().limit(limit.with_algorithm(TokenBucket))
    };
    let (limiter, clock) = limiter(per_eight(19));
    let unsent = limiter.try_acquire("k", &Cost::new().requests(6)).unwrap();
    clock.advance(3 * S);
    change(&limiter, &per_eight(9));
    take(&limiter, 5);
    unsent.release();
    assert_eq!(used_and_held(&limiter), (5, 0));
    let unsent = limiter.try_acquire("k", &Cost::new().requests(3)).unwrap();
    change(&limiter, &per_eight(8));
    unsent.release();
    assert_eq!(used_and_held(&limiter), (5, 0));
}
