use std::time::Duration;
use tollgate::Timestamp;

use tollgate::limiter::{Event, KeyChanges, ManualClock, RateLimited};
use tollgate::provider::OPENAI;
use tollgate::quota::{Algorithm, Cost, Dimension, Quota, Usage};

use super::changes::{START, of, taken, tracked, used_and_held};
use super::{S, builder, settle_down, tokens};

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

#[test]
fn what_others_take_and_hold_counts_and_is_not_collected_here() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let clock = ManualClock::new();
        let quota = Quota::new().tpm(1_000).concurrency(3).with_algorithm(algorithm);
        let limiter = builder().quota("k", quota).clock(clock.clone()).build().unwrap();
        limiter.state().track();
        limiter.state().apply_changes(&taken("k", Dimension::Tokens, &[(START, 400)], 250));
        limiter.state().apply_changes(&taken("k", Dimension::Concurrency, &[], 2));
        assert_eq!(used_and_held(&limiter, 0), (400, 250), "{algorithm:?}");
        assert_eq!(used_and_held(&limiter, 1), (0, 2));
        let own = limiter.try_acquire("k", &tokens(350)).unwrap();
        assert!(limiter.try_acquire("k", &Cost::new()).is_err(), "two others and one of ours");
        let told = limiter.state().collect_changes();
        assert_eq!(of(&told, &Dimension::Tokens), Some((vec![], 350)));
        assert_eq!(of(&told, &Dimension::Concurrency), Some((vec![], 1)));
        limiter.state().apply_changes(&taken("k", Dimension::Tokens, &[(START, -100)], 50));
        assert_eq!(used_and_held(&limiter, 0), (300, 400), "{algorithm:?}");
        own.settle(&tokens(10));
        assert_eq!(used_and_held(&limiter, 0), (310, 50), "{algorithm:?}");
    }
}

#[test]
fn nobody_makes_a_key_for_what_is_nothing() {
    let (limiter, _) = tracked(Quota::new().tpm(1_000));
    limiter.state().apply_changes(&taken("other", Dimension::Tokens, &[(START, -5)], 0));
    assert_eq!(limiter.state().keys(), ["k"]);
    limiter.state().apply_changes(&taken("other", Dimension::Tokens, &[(START, 5)], 0));
    assert_eq!(limiter.state().keys(), ["k", "other"]);
}

#[tokio::test]
async fn who_waits_is_let_in_when_others_hold_less() {
    let (limiter, _clock) = tracked(Quota::new().concurrency(1));
    limiter.state().apply_changes(&taken("k", Dimension::Concurrency, &[], 1));
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire("k", &Cost::new()).await.unwrap() }
    });
    settle_down().await;
    assert_eq!(limiter.stats("k").waiting, 1);
    limiter.state().apply_changes(&taken("k", Dimension::Concurrency, &[], 0));
    waiting.await.unwrap();
}

#[test]
fn what_headers_told_of_others_is_not_counted_again_when_they_tell_it_themselves() {
    let clock = ManualClock::new();
    let quota = Quota::new().rpm(100);
    let limiter = builder().provider(OPENAI).quota("k", quota).clock(clock.clone()).build();
    let limiter = limiter.unwrap();
    limiter.state().track();
    let observe = |remaining: u64| {
        let mut headers = http::HeaderMap::new();
        headers.insert("x-ratelimit-limit-requests", 100.into());
        headers.insert("x-ratelimit-remaining-requests", remaining.into());
        let permit = limiter.try_acquire("k", &Cost::new()).unwrap();
        permit.observe(&OPENAI.limits(&headers));
    };
    observe(99);
    observe(68);
    let guessed = used_and_held(&limiter, 0).0 - 2;
    assert!((25..=30).contains(&guessed), "about 30 are somebody else's, not {guessed}");
    let told = of(&limiter.state().collect_changes(), &Dimension::Requests);
    assert_eq!(told, Some((vec![(START, 2)], 0)), "what headers tell is nobody's of ours");
    limiter.state().apply_changes(&taken("k", Dimension::Requests, &[(START, 20)], 0));
    assert_eq!(used_and_held(&limiter, 0), (2 + guessed, 0));
    limiter.state().apply_changes(&taken("k", Dimension::Requests, &[(START, 15)], 0));
    assert_eq!(used_and_held(&limiter, 0), (37, 0), "what was known of the 35 counts once");
    // Long after the headers others have taken more.
    observe(50);
    let known = used_and_held(&limiter, 0).0;
    for _ in 0..3 {
        limiter.state().collect_changes();
    }
    limiter.state().apply_changes(&taken("k", Dimension::Requests, &[(START, 10)], 0));
    assert_eq!(used_and_held(&limiter, 0).0, known + 10);
}

#[test]
fn a_reset_is_told_and_forgets_elsewhere_what_was_used_before_it() {
    let (limiter, clock) = tracked(Quota::new().rpm(10).tpm(1_000));
    let (other, other_clock) = tracked(Quota::new().rpm(10).tpm(1_000));
    let early = limiter.try_acquire("k", &tokens(100)).unwrap();
    drop(other.try_acquire("k", &tokens(200)).unwrap());
    clock.advance(Duration::from_secs(1));
    other_clock.advance(Duration::from_secs(1));
    limiter.reset("k");
    limiter.record("k", &usage(5, 5));
    other.record("k", &usage(3, 4));
    let changes = limiter.state().collect_changes();
    assert_eq!(changes[0].reset_at, Some(START + S));
    assert_eq!(changes[0].cooling_until, Some(Timestamp::UNIX_EPOCH));
    assert_eq!(of(&changes, &Dimension::Requests), Some((vec![(START + S, 1)], 0)));
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![(START + S, 10)], 100)));
    other.state().apply_changes(&changes);
    assert_eq!(used_and_held(&other, 0), (2, 0), "one of each since the reset");
    assert_eq!(used_and_held(&other, 1), (17, 100));
    // What it took was forgotten: there is nothing to give back.
    early.release();
    assert_eq!(used_and_held(&limiter, 0), (1, 0));
    let changes = limiter.state().collect_changes();
    assert_eq!(of(&changes, &Dimension::Requests), None);
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![], 0)));
}

#[test]
fn a_key_that_was_never_used_here_can_be_reset_for_others() {
    let (limiter, _) = tracked(Quota::new().rpm(10));
    limiter.reset("k");
    assert_eq!(limiter.state().collect_changes()[0].reset_at, Some(START));
}

#[test]
fn a_cool_down_is_told_and_taken_over() {
    let (limiter, _clock) = tracked(Quota::new().rpm(10));
    let (other, _other_clock) = tracked(Quota::new().rpm(10));
    let mut events = other.subscribe();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(20))));
    let changes = limiter.state().collect_changes();
    assert_eq!(changes[0].cooling_until, Some(START + 20 * S));
    other.state().apply_changes(&changes);
    assert_eq!(other.stats("k").cooling_until, Some(START + 20 * S));
    let until = START + 20 * S;
    assert_eq!(
        events.try_recv().unwrap(),
        Event::CoolingDown { key: "k".into(), until, agent: Some("another process".into()) }
    );
    assert_eq!(other.state().collect_changes(), [], "it is not ours to tell");

    let mut shorter = KeyChanges::new("k");
    shorter.cooling_until = Some(START + 5 * S);
    other.state().apply_changes(&[shorter.clone()]);
    assert_eq!(other.stats("k").cooling_until, Some(until));
    shorter.cooling_until = Some(Timestamp::UNIX_EPOCH);
    other.state().apply_changes(&[shorter]);
    assert_eq!(other.stats("k").cooling_until, None);
}

#[test]
fn a_snapshot_says_until_when_a_key_cools_down_and_that_is_obeyed() {
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
fn a_window_that_started_elsewhere_first_ends_with_that() {
    let clock = ManualClock::new();
    let quota = Quota::new().rpm(10).with_algorithm(Algorithm::FixedWindow);
    let limiter = builder().provider(OPENAI).quota("k", quota).clock(clock.clone()).build();
    let limiter = limiter.unwrap();
    clock.advance(Duration::from_secs(30));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    limiter.state().apply_changes(&taken("k", Dimension::Requests, &[(START + 10 * S, 4)], 0));
    assert_eq!(limiter.stats("k").limits[0].used, 5);
    clock.advance(Duration::from_secs(40));
    limiter.state().apply_changes(&taken("k", Dimension::Requests, &[(START + 70 * S, 3)], 0));
    clock.advance(Duration::from_secs(30));
    assert_eq!(limiter.stats("k").limits[0].used, 3, "of the window that began at 70 s");
}
