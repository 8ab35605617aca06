//! What a limiter has answered in all, whoever listens; and news, for who listens to no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tollgate::limiter::{Event, Limiter, ManualClock, RateLimited};
use tollgate::quota::{Cost, Dimension, Margin, Quota};

fn limiter(clock: &ManualClock) -> Limiter {
    let builder = Limiter::builder().clock(clock.clone()).margin(Margin::NONE).max_waiting(2);
    let builder = builder.quota("k", Quota::new().rpm(2)).quota("account", Quota::new().rpm(100));
    builder.build().unwrap()
}

fn totals(limiter: &Limiter) -> (u64, u64, u64) {
    let totals = limiter.state().totals();
    (totals.granted, totals.denied, totals.waited)
}

#[test]
fn a_request_counts_once_however_it_asks_and_however_many_keys_it_has() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let cost = Cost::new();
    limiter.try_acquire("k", &cost).unwrap();
    limiter.acquire_all(&["k", "account"], &cost).try_now().unwrap();
    assert_eq!(totals(&limiter), (2, 0, 0));
    limiter.try_acquire("k", &cost).unwrap_err();
    limiter.key("k").unwrap().try_acquire(&cost).unwrap_err();
    limiter.acquire_all(&["account", "k"], &cost).try_now().unwrap_err();
    limiter.decide("k", &cost);
    assert_eq!(totals(&limiter), (2, 3, 0));
}

#[test]
fn who_waits_counts_when_let_in_and_who_finds_the_queue_full_is_denied() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let cost = Cost::new();
    (0..2).for_each(|_| drop(limiter.try_acquire("k", &cost).unwrap()));
    let mut waits = [0, 1, 2].map(|_| Box::pin(limiter.acquire("k", &cost)));
    let mut look = |at: usize| waits[at].as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(look(0).is_pending() && look(1).is_pending());
    assert!(matches!(look(2), Poll::Ready(Err(_))));
    assert_eq!(totals(&limiter), (2, 1, 0));
    clock.advance(Duration::from_secs(60));
    assert!(look(0).is_ready() && look(1).is_ready());
    assert_eq!(totals(&limiter), (4, 1, 2));
}

#[test]
fn of_those_denied_the_first_since_the_last_call_is_kept() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let deny = |times: u32| {
        (0..times).for_each(|_| drop(limiter.try_acquire("k", &Cost::new())));
    };
    deny(5);
    assert_eq!(limiter.state().sample_denied(), None);
    deny(2);
    assert_eq!(limiter.state().sample_denied(), Some(("k".into(), Some(Dimension::Requests))));
    assert_eq!(limiter.state().sample_denied(), None);
}

#[test]
fn who_listens_for_news_hears_of_no_single_reservation() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let heard = Arc::new(AtomicUsize::new(0));
    let ear = Arc::clone(&heard);
    limiter.on_change(move |event| {
        let news = matches!(
            event,
            Event::CoolingDown { .. } | Event::Reduced { .. } | Event::QuotaChanged { .. }
        );
        assert!(news, "{event:?}");
        ear.fetch_add(1, Ordering::Relaxed);
    });
    // Somebody else hears everything.
    let all = limiter.subscribe();
    let take = || drop(limiter.try_acquire("k", &Cost::new()));
    (0..3).for_each(|_| take());
    assert_eq!((heard.load(Ordering::Relaxed), all.len()), (0, 5));
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(1))));
    limiter.quotas().set("k", &Quota::new().rpm(9));
    assert_eq!((heard.load(Ordering::Relaxed), all.len()), (3, 8));
    drop(all);
    take();
    limiter.quotas().set("k", &Quota::new().rpm(9));
    assert_eq!(heard.load(Ordering::Relaxed), 4);
}
