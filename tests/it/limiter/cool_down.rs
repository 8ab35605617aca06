//! Pauses announced by other processes.

use paceline::Timestamp;
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{
    Code, CoolDown, Event, Ignored, Limiter, ManualClock, RateLimited, Reduction, Refusal,
    RefusalKind,
};
use paceline::quota::{Algorithm, Cost, Quota};

use super::{S, builder};

/// Returns a limiter with one key `k` in token buckets; a pause lasts exactly as long as stated.
fn limiter(quota: Quota, reduction: Reduction) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let quota = quota.with_algorithm(Algorithm::TokenBucket);
    let builder = builder().reduction(reduction).quota("k", quota).clock(clock.clone());
    (builder.build().unwrap(), clock)
}

fn exact() -> Reduction {
    Reduction::new().spread(Duration::ZERO)
}

fn pause(limiter: &Limiter, seconds: u64) -> CoolDown {
    CoolDown::new("k", "other", Duration::from_secs(seconds), limiter.now()).with_reason("429")
}

fn refused(limiter: &Limiter) -> Option<(Code, Wait)> {
    let refused = limiter.try_acquire("k", &Cost::new()).err();
    refused.map(|refused| (refused.code, refused.wait))
}

#[test]
fn cool_down_ends_with_empty_bucket_then_refills() {
    let (limiter, clock) = limiter(Quota::new().rpm(60), exact());
    let mut events = limiter.subscribe();
    let until = limiter.now() + 3 * S;
    assert_eq!(limiter.feedback().apply_cool_down(&pause(&limiter, 3), "me"), Ok(until));
    let agent = Some("other".into());
    let reported = Event::CoolingDown { key: "k".into(), until, kind: None, agent };
    assert_eq!(events.try_recv().unwrap(), reported);
    assert!(events.try_recv().is_err(), "no limit is reduced");
    assert_eq!(limiter.stats("k").limits[0].limit, 60);
    // The bucket is empty at the end, and refills by one a second.
    assert_eq!(refused(&limiter), Some((Code::CoolingDown, Wait::At(until + S))));
    clock.advance(Duration::from_secs(3));
    assert_eq!(refused(&limiter), Some((Code::RpmExceeded, Wait::At(until + S))));
    clock.advance(Duration::from_secs(1));
    assert_eq!(refused(&limiter), None);
    assert!(refused(&limiter).is_some());
}

#[test]
fn kind_of_refusal_is_stated_until_another_program_extends_its_pause() {
    for kind in [RefusalKind::Rate, RefusalKind::Window] {
        let (limiter, clock) = limiter(Quota::new().rpm(60), exact());
        let mut events = limiter.subscribe();
        let mut refusal = Refusal::new(kind);
        refusal.delay = Some(3 * S);
        limiter.feedback().rate_limited("k", &RateLimited::of(refusal));
        let event = events.try_recv().unwrap();
        assert!(
            matches!(event, Event::CoolingDown { kind: Some(sent), .. } if sent == kind),
            "{event:?}"
        );
        assert_eq!(limiter.stats("k").cooling_kind, Some(kind));
        // A shorter pause of the other kind leaves the end, and its kind.
        let other = match kind {
            RefusalKind::Rate => RefusalKind::Window,
            _ => RefusalKind::Rate,
        };
        let mut refusal = Refusal::new(other);
        refusal.delay = Some(S);
        limiter.feedback().rate_limited("k", &RateLimited::of(refusal));
        while let Ok(event) = events.try_recv() {
            let is_of_other =
                matches!(event, Event::CoolingDown { kind: Some(sent), .. } if sent == other);
            assert!(!is_of_other, "{event:?}");
        }
        assert_eq!(limiter.stats("k").cooling_kind, Some(kind));
        limiter.feedback().apply_cool_down(&pause(&limiter, 9), "me").unwrap();
        assert_eq!(limiter.stats("k").cooling_kind, None);
        clock.advance(20 * S);
        let stats = limiter.stats("k");
        assert_eq!((stats.cooling_until, stats.cooling_kind), (None, None));
    }
}

#[test]
fn cool_down_extends_shorter_pause_and_never_shortens() {
    let (limiter, _) = limiter(Quota::new().rpm(60), exact());
    let begin = limiter.now();
    assert_eq!(limiter.feedback().apply_cool_down(&pause(&limiter, 10), "me"), Ok(begin + 10 * S));
    assert_eq!(
        limiter.feedback().apply_cool_down(&pause(&limiter, 9), "me"),
        Err(Ignored::NotLonger)
    );
    assert_eq!(
        limiter.feedback().apply_cool_down(&pause(&limiter, 10), "me"),
        Err(Ignored::NotLonger)
    );
    assert_eq!(limiter.feedback().apply_cool_down(&pause(&limiter, 11), "me"), Ok(begin + 11 * S));
}

#[test]
fn cool_down_is_capped_at_one_hour_or_longest_window() {
    let year = 366 * 86_400;
    let cases = [(Quota::new().rpm(60), 3_600), (Quota::new().rpm(60).rpd(9), 86_400)];
    for (quota, longest) in cases {
        let (limiter, _) = limiter(quota, exact());
        let until = limiter.now() + Duration::from_secs(longest);
        assert_eq!(limiter.feedback().apply_cool_down(&pause(&limiter, year), "me"), Ok(until));
        let for_ever = CoolDown::new("k", "other", Duration::MAX, limiter.now());
        assert_eq!(limiter.feedback().apply_cool_down(&for_ever, "me"), Err(Ignored::NotLonger));
    }
}

#[test]
fn ignored_cool_down_changes_no_state() {
    let (limiter, clock) = limiter(Quota::new().rpm(60), exact());
    clock.advance(Duration::from_secs(60));
    let mut events = limiter.subscribe();
    let now = limiter.now();
    let from =
        |key, agent, after, time| CoolDown::new(key, agent, Duration::from_secs(after), time);
    let cases = [
        (from("k", "me", 3, now), Ignored::Own),
        (from("x", "other", 3, now), Ignored::Unknown),
        (from("k", "other", 0, now), Ignored::Zero),
        (from("k", "other", 3, now - 31 * S), Ignored::Stale),
        (from("k", "other", 3, now + 31 * S), Ignored::Stale),
        (from("k", "other", 3, Timestamp::UNIX_EPOCH), Ignored::Stale),
    ];
    for (pause, why) in cases {
        assert_eq!(limiter.feedback().apply_cool_down(&pause, "me"), Err(why), "{pause:?}");
    }
    assert!(events.try_recv().is_err());
    assert_eq!(refused(&limiter), None);
    assert_eq!(limiter.state().keys(), ["k"]);
}

#[test]
fn cool_down_without_reduction_keeps_bucket_full() {
    let (limiter, clock) = limiter(Quota::new().rpm(60), Reduction::OFF);
    let until = limiter.now() + 3 * S;
    assert_eq!(limiter.feedback().apply_cool_down(&pause(&limiter, 3), "me"), Ok(until));
    assert_eq!(refused(&limiter), Some((Code::CoolingDown, Wait::At(until))));
    clock.advance(Duration::from_secs(3));
    assert_eq!(refused(&limiter), None);
}

#[test]
fn cool_down_ends_at_different_times_per_instance() {
    let ends: Vec<Duration> = (0..20)
        .map(|_| {
            let (limiter, _) = limiter(Quota::new().rpm(60), Reduction::new());
            let until = limiter.feedback().apply_cool_down(&pause(&limiter, 8), "me").unwrap();
            until - limiter.now()
        })
        .collect();
    assert!(ends.iter().all(|end| (8 * S..=8 * S + S / 2).contains(end)), "{ends:?}");
    let mut apart = ends.clone();
    apart.sort_unstable();
    apart.dedup();
    assert!(apart.len() > 10, "{ends:?}");
}
