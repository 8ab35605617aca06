//! Totals of all decisions, and listeners that skip single reservations.

use paceline::limiter::{Code, Event, Limiter, ManualClock, RateLimited};
use paceline::quota::{Cost, Dimension, Margin, Quota};
use paceline_limiter::seam;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

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
fn totals_count_a_request_once_for_any_call_and_keys() {
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
fn totals_count_waiter_when_admitted_and_full_queue_denied() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let cost = Cost::new();
    (0..2).for_each(|_| drop(limiter.try_acquire("k", &cost).unwrap()));
    let mut waits = [0, 1, 2].map(|_| Box::pin(limiter.acquire("k", &cost)));
    let mut poll =
        |index: usize| waits[index].as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll(0).is_pending() && poll(1).is_pending());
    assert!(matches!(poll(2), Poll::Ready(Err(_))));
    assert_eq!(totals(&limiter), (2, 1, 0));
    clock.advance(Duration::from_secs(60));
    assert!(poll(0).is_ready() && poll(1).is_ready());
    assert_eq!(totals(&limiter), (4, 1, 2));
}

#[test]
fn sample_denied_returns_first_refusal_after_last_call() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let deny = |times: u32| {
        (0..times).for_each(|_| drop(limiter.try_acquire("k", &Cost::new())));
    };
    deny(5);
    assert_eq!(seam::sample_denied(&limiter), None);
    deny(2);
    let sample = seam::sample_denied(&limiter).unwrap();
    assert_eq!((&*sample.key, sample.code), ("k", Some(Code::RpmExceeded)));
    assert_eq!(sample.dimension, Some(Dimension::Requests));
    assert_eq!(seam::sample_denied(&limiter), None);
}

#[test]
fn state_listener_receives_no_single_reservations() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock);
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    seam::on_change(&limiter, move |event| {
        let is_state_event = matches!(
            event,
            Event::CoolingDown { .. } | Event::Reduced { .. } | Event::QuotaChanged { .. }
        );
        assert!(is_state_event, "{event:?}");
        counter.fetch_add(1, Ordering::Relaxed);
    });
    // Another subscriber receives every event.
    let all = limiter.subscribe();
    let take = || drop(limiter.try_acquire("k", &Cost::new()));
    (0..3).for_each(|_| take());
    assert_eq!((received.load(Ordering::Relaxed), all.len()), (0, 5));
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(1))));
    limiter.quotas().set("k", &Quota::new().rpm(9)).unwrap();
    assert_eq!((received.load(Ordering::Relaxed), all.len()), (3, 8));
    drop(all);
    take();
    limiter.quotas().set("k", &Quota::new().rpm(9)).unwrap();
    assert_eq!(received.load(Ordering::Relaxed), 4);
}
