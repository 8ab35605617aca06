use paceline::Timestamp;
use std::time::Duration;

use paceline::limiter::{Event, KeyChanges, ManualClock, RateLimited};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Cost, Dimension, Quota, Usage};
use paceline_limiter::seam;

use super::changes::{START, of, taken, tracked, used_and_held};
use super::{S, builder, settle_down, tokens};

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

#[test]
fn remote_usage_counts_and_is_not_collected_again() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let clock = ManualClock::new();
        let quota = Quota::new().tpm(1_000).concurrency(3).with_algorithm(algorithm);
        let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
        seam::track(&limiter);
        seam::apply_changes(&limiter, &taken("k", Dimension::Tokens, &[(START, 400)], 250));
        seam::apply_changes(&limiter, &taken("k", Dimension::Concurrency, &[], 2));
        assert_eq!(used_and_held(&limiter, 0), (400, 250), "{algorithm:?}");
        assert_eq!(used_and_held(&limiter, 1), (0, 2));
        let own = limiter.try_acquire("k", &tokens(350)).unwrap();
        assert!(
            limiter.try_acquire("k", &Cost::new()).is_err(),
            "two remote requests and one local"
        );
        let reported = seam::collect_changes(&limiter);
        assert_eq!(of(&reported, &Dimension::Tokens), Some((vec![], 350)));
        assert_eq!(of(&reported, &Dimension::Concurrency), Some((vec![], 1)));
        seam::apply_changes(&limiter, &taken("k", Dimension::Tokens, &[(START, -100)], 50));
        assert_eq!(used_and_held(&limiter, 0), (300, 400), "{algorithm:?}");
        own.settle(&tokens(10));
        assert_eq!(used_and_held(&limiter, 0), (310, 50), "{algorithm:?}");
    }
}

#[test]
fn remote_change_of_zero_creates_no_key() {
    let (limiter, _) = tracked(Quota::new().tpm(1_000));
    seam::apply_changes(&limiter, &taken("other", Dimension::Tokens, &[(START, -5)], 0));
    assert_eq!(limiter.state().keys(), ["k"]);
    seam::apply_changes(&limiter, &taken("other", Dimension::Tokens, &[(START, 5)], 0));
    assert_eq!(limiter.state().keys(), ["k", "other"]);
}

#[tokio::test]
async fn waiter_is_admitted_when_remote_held_amount_shrinks() {
    let (limiter, _clock) = tracked(Quota::new().concurrency(1));
    seam::apply_changes(&limiter, &taken("k", Dimension::Concurrency, &[], 1));
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire("k", &Cost::new()).await.unwrap() }
    });
    settle_down().await;
    assert_eq!(limiter.stats("k").waiting, 1);
    seam::apply_changes(&limiter, &taken("k", Dimension::Concurrency, &[], 0));
    waiting.await.unwrap();
}

#[test]
fn usage_shown_by_headers_and_then_reported_counts_once() {
    let clock = ManualClock::new();
    let quota = Quota::new().rpm(100);
    let limiter = builder().provider(OPENAI).quota("k", quota).clock(clock.clone()).build();
    let limiter = limiter.unwrap();
    seam::track(&limiter);
    let observe = |remaining: u64| {
        let mut headers = http::HeaderMap::new();
        headers.insert("x-ratelimit-limit-requests", 100.into());
        headers.insert("x-ratelimit-remaining-requests", remaining.into());
        let permit = limiter.try_acquire("k", &Cost::new()).unwrap();
        permit.observe(&OPENAI.limits(&headers));
    };
    observe(99);
    observe(68);
    let shown = used_and_held(&limiter, 0).0 - 2;
    assert!((25..=30).contains(&shown), "expected about 30 used by others, got {shown}");
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Requests);
    assert_eq!(reported, Some((vec![(START, 2)], 0)), "usage read from headers is not reported");
    seam::apply_changes(&limiter, &taken("k", Dimension::Requests, &[(START, 20)], 0));
    assert_eq!(used_and_held(&limiter, 0), (2 + shown, 0));
    seam::apply_changes(&limiter, &taken("k", Dimension::Requests, &[(START, 15)], 0));
    assert_eq!(
        used_and_held(&limiter, 0),
        (37, 0),
        "the part shown by headers of the 35 counts once"
    );
    // Others use more long after the headers.
    observe(50);
    let known = used_and_held(&limiter, 0).0;
    for _ in 0..3 {
        seam::collect_changes(&limiter);
    }
    seam::apply_changes(&limiter, &taken("k", Dimension::Requests, &[(START, 10)], 0));
    assert_eq!(used_and_held(&limiter, 0).0, known + 10);
}

#[test]
fn reset_is_reported_and_clears_earlier_remote_usage() {
    let (limiter, clock) = tracked(Quota::new().rpm(10).tpm(1_000));
    let (other, other_clock) = tracked(Quota::new().rpm(10).tpm(1_000));
    let early = limiter.try_acquire("k", &tokens(100)).unwrap();
    drop(other.try_acquire("k", &tokens(200)).unwrap());
    clock.advance(Duration::from_secs(1));
    other_clock.advance(Duration::from_secs(1));
    limiter.reset("k");
    limiter.record("k", &usage(5, 5));
    other.record("k", &usage(3, 4));
    let changes = seam::collect_changes(&limiter);
    assert_eq!(changes[0].reset_at, Some(START + S));
    assert_eq!(changes[0].cooling_until, Some(Timestamp::UNIX_EPOCH));
    assert_eq!(of(&changes, &Dimension::Requests), Some((vec![(START + S, 1)], 0)));
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![(START + S, 10)], 100)));
    seam::apply_changes(&other, &changes);
    assert_eq!(used_and_held(&other, 0), (2, 0), "one of each since the reset");
    assert_eq!(used_and_held(&other, 1), (17, 100));
    // The reset cleared the reservation: the release refunds zero.
    early.release();
    assert_eq!(used_and_held(&limiter, 0), (1, 0));
    let changes = seam::collect_changes(&limiter);
    assert_eq!(of(&changes, &Dimension::Requests), None);
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![], 0)));
}

#[test]
fn remote_reset_closes_outage() {
    let (limiter, _) = tracked(Quota::new().rpm(10));
    let (other, _other_clock) = tracked(Quota::new().rpm(10));
    for _ in 0..5 {
        other.feedback().rate_limited("k", &RateLimited::default().overloaded());
    }
    assert!(other.stats("k").outage.is_some());
    limiter.reset("k");
    seam::apply_changes(&other, &seam::collect_changes(&limiter));
    assert_eq!(other.stats("k").outage, None);
    assert!(other.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn reset_of_unused_key_is_reported() {
    let (limiter, _) = tracked(Quota::new().rpm(10));
    limiter.reset("k");
    assert_eq!(seam::collect_changes(&limiter)[0].reset_at, Some(START));
}

#[test]
fn cool_down_is_reported_and_applied_remotely() {
    let (limiter, _clock) = tracked(Quota::new().rpm(10));
    let (other, _other_clock) = tracked(Quota::new().rpm(10));
    let mut events = other.subscribe();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(20))));
    let changes = seam::collect_changes(&limiter);
    assert_eq!(changes[0].cooling_until, Some(START + 20 * S));
    seam::apply_changes(&other, &changes);
    assert_eq!(other.stats("k").cooling_until, Some(START + 20 * S));
    let until = START + 20 * S;
    assert_eq!(
        events.try_recv().unwrap(),
        Event::CoolingDown {
            key: "k".into(),
            until,
            kind: None,
            agent: Some("another process".into())
        }
    );
    assert_eq!(seam::collect_changes(&other), [], "a remote pause is not reported again");

    let mut shorter = KeyChanges::new("k");
    shorter.cooling_until = Some(START + 5 * S);
    seam::apply_changes(&other, &[shorter.clone()]);
    assert_eq!(other.stats("k").cooling_until, Some(until));
    shorter.cooling_until = Some(Timestamp::UNIX_EPOCH);
    seam::apply_changes(&other, &[shorter]);
    assert_eq!(other.stats("k").cooling_until, None);
}

#[test]
fn snapshot_restores_cool_down() {
    let clock = ManualClock::new();
    let make = || builder().quota("k", Quota::new().rpm(10)).clock(clock.clone()).build().unwrap();
    let (before, after) = (make(), make());
    before.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(20))));
    let snapshot = before.state().snapshot();
    assert_eq!(snapshot[0].cooling_until, Some(START + 20 * S));
    after.state().absorb(&snapshot);
    assert_eq!(after.stats("k").cooling_until, Some(START + 20 * S));
    assert!(after.try_acquire("k", &Cost::new()).is_err());
    clock.advance(Duration::from_secs(20));
    assert!(after.try_acquire("k", &Cost::new()).is_ok());
}

#[test]
fn window_started_earlier_elsewhere_ends_with_remote_window() {
    let clock = ManualClock::new();
    let quota = Quota::new().rpm(10).with_algorithm(Algorithm::FixedWindow);
    let limiter = builder().provider(OPENAI).quota("k", quota).clock(clock.clone()).build();
    let limiter = limiter.unwrap();
    clock.advance(Duration::from_secs(30));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    seam::apply_changes(&limiter, &taken("k", Dimension::Requests, &[(START + 10 * S, 4)], 0));
    assert_eq!(limiter.stats("k").limits[0].used, 5);
    clock.advance(Duration::from_secs(40));
    seam::apply_changes(&limiter, &taken("k", Dimension::Requests, &[(START + 70 * S, 3)], 0));
    clock.advance(Duration::from_secs(30));
    assert_eq!(limiter.stats("k").limits[0].used, 3, "of the window that began at 70 s");
}
