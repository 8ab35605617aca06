//! Regression tests of corner cases.

use std::sync::Arc;
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{
    Backend, Ending, Limiter, ManualClock, RateLimited, Reservation, ReserveError, Reserving,
    TokioClock, UnknownKey,
};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota, Usage, Window};
use parking_lot::Mutex;

use super::{builder, manual, paused, settle_down, tokens};

#[tokio::test(start_paused = true)]
async fn capacity_at_deadline_behind_another_gate_is_reported() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(30)).await.unwrap().settle(&tokens(30));
    let mut first = std::pin::pin!(limiter.wait_for_capacity("k", &tokens(60)));
    assert!(futures_util::poll!(&mut first).is_pending());
    limiter.acquire("k", &tokens(30)).await.unwrap().settle(&tokens(30));
    let second = limiter.wait_for_capacity("k", &tokens(5)).max_wait(Duration::from_secs(7));
    second.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_for_capacity_covers_custom_dimension() {
    let dimension = Dimension::custom("images");
    let quota = Quota::new().limit(Limit::new(dimension, 2, Window::MINUTE).unwrap());
    let limiter = paused(quota);
    let images = Cost::new().custom("images", 2);
    limiter.acquire("k", &images).await.unwrap().settle(&images);
    let mut waiting = std::pin::pin!(limiter.wait_for_capacity("k", &images));
    assert!(futures_util::poll!(&mut waiting).is_pending());
}

#[test]
fn removed_refused_keys_do_not_count_as_keys() {
    let limiter = builder().unknown_key(UnknownKey::Refuse).max_keys(2).build().unwrap();
    for number in 0..9 {
        let key = format!("tenant {number}");
        limiter.quotas().set(&key, &Quota::new().rpm(9)).unwrap();
        limiter.try_acquire(&key, &Cost::new()).unwrap();
        assert!(limiter.quotas().remove(&key));
    }
}

#[test]
fn quota_set_replaces_limits_given_with_acquire() {
    let (limiter, _) = manual(Quota::new().rpm(9));
    let limits = Quota::new().rpm(1);
    limiter.acquire("k", &Cost::new()).limits(&limits).try_now().unwrap();
    limiter.quotas().set("k", &Quota::new().rpm(7)).unwrap();
    assert_eq!(limiter.quotas().of("k"), Quota::new().rpm(7));
    limiter.acquire("k", &Cost::new()).limits(&limits).try_now().unwrap_err();
    limiter.quotas().remove("k");
    assert_eq!(limiter.quotas().of("k"), Quota::new());
}

#[test]
fn reset_of_key_with_shared_quota_resets_shared_bucket() {
    let limiter = builder().quota("g*", Quota::new().rpm(1).shared()).build().unwrap();
    limiter.try_acquire("g1", &Cost::new()).unwrap();
    limiter.feedback().rate_limited("g1", &RateLimited::new(Some(Duration::from_secs(9))));
    limiter.reset("g1");
    limiter.try_acquire("g1", &Cost::new()).unwrap();
}

#[test]
fn handle_follows_key_to_shared_quota() {
    let limiter = builder().quota("g*", Quota::new().rpm(9)).build().unwrap();
    let handle = limiter.key("g1").unwrap();
    limiter.quotas().set("g*", &Quota::new().rpm(1).shared()).unwrap();
    limiter.try_acquire("g2", &Cost::new()).unwrap();
    handle.try_acquire(&Cost::new()).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn waiter_follows_key_to_shared_quota() {
    let day = |n| Quota::new().rpd(n).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().clock(TokioClock::new()).quota("g*", day(1)).build().unwrap();
    limiter.acquire("g1", &Cost::new()).await.unwrap();
    let waiters = [0, 1].map(|_| tokio::spawn(limiter.acquire("g1", &Cost::new())));
    settle_down().await;
    limiter.quotas().set("g*", &day(1_000).shared()).unwrap();
    settle_down().await;
    assert!(waiters.iter().all(|waiter| waiter.is_finished()));
    assert_eq!(limiter.stats("g1").limits[0].used, 3);
}

#[test]
fn huge_amounts_neither_panic_nor_lose_debt() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let clock = ManualClock::new();
        let quota = |n| Quota::new().rpm(n).tpm(n).rpd(n).concurrency(3).with_algorithm(algorithm);
        let limiter = builder().quota("k", quota(60)).clock(clock.clone()).build().unwrap();
        let permits: Vec<_> =
            (0..2).map(|_| limiter.try_acquire("k", &tokens(5)).unwrap()).collect();
        for permit in permits {
            permit.settle(&Cost::new().requests(u64::MAX).tokens(u64::MAX));
        }
        let usage = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        limiter.record("k", &usage);
        limiter.record("k", &usage);
        for n in [1, 60, 7] {
            limiter.quotas().set("k", &quota(n)).unwrap();
            clock.advance(Duration::from_secs(1));
            assert!(limiter.try_acquire("k", &tokens(1)).is_err(), "{algorithm:?} {n}");
            assert_eq!(limiter.state().prune(), 0);
            let _results = (limiter.decide("k", &tokens(u64::MAX)), limiter.state().snapshot());
        }
        limiter.reset("k");
        limiter.try_acquire("k", &tokens(1)).unwrap();
    }
}

/// A remote store that admits one request at a time under `b`. It answers 10 ms after its check and reports
/// the given number of milliseconds as its patience.
#[derive(Debug, Default)]
struct SingleSlotBackend(Mutex<bool>, u64);

impl Backend for SingleSlotBackend {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let answer = self.try_reserve(reservation);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer
        })
    }

    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), ReserveError> {
        if !reservation.scopes.iter().any(|scope| scope.key == "b") {
            return Ok(());
        }
        let taken = std::mem::replace(&mut *self.0.lock(), true);
        if taken { Err(ReserveError::Full(Wait::Unknown)) } else { Ok(()) }
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {
        *self.0.lock() = false;
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.1)
    }

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

fn under_b(patience: u64) -> Limiter {
    let builder = builder().clock(TokioClock::new());
    builder.backend(Arc::new(SingleSlotBackend(Mutex::default(), patience))).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn permit_released_under_any_key_wakes_backend_call() {
    for pause in [5, 50] {
        let limiter = under_b(0);
        let held = limiter.acquire("b", &Cost::new()).await.unwrap();
        let asking = tokio::spawn(limiter.acquire_all(&["a", "b"], &Cost::new()));
        tokio::time::sleep(Duration::from_millis(pause)).await;
        drop(held);
        let granted = tokio::time::timeout(Duration::from_secs(5), asking).await;
        granted.expect("the waiter hangs").unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn zero_max_wait_is_still_answered_by_backend() {
    let limiter = under_b(20);
    let begin = limiter.now();
    let now = || limiter.acquire("b", &Cost::new()).max_wait(Duration::ZERO);
    let held = now().await.unwrap();
    let error = now().await.unwrap_err();
    assert!(error.refused().is_some_and(|refused| refused.wait == Wait::Unknown));
    drop(held);
    now().await.unwrap();
    assert_eq!((limiter.now() - begin, limiter.stats("b").waiting), (Duration::from_millis(30), 0));
}

#[tokio::test(start_paused = true)]
async fn backend_answer_is_awaited_until_deadline_or_patience() {
    let limiter = under_b(8);
    let begin = limiter.now();
    let wait = |ms| limiter.acquire("b", &Cost::new()).max_wait(Duration::from_millis(ms));
    wait(9).await.unwrap_err();
    assert_eq!(limiter.now() - begin, Duration::from_millis(9));
    wait(7).await.unwrap_err();
    assert_eq!(limiter.now() - begin, Duration::from_millis(17));
    wait(11).await.unwrap();
}

/// A store that panics on the first call.
#[derive(Debug, Default)]
struct Panics(Mutex<bool>);

impl Backend for Panics {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        Box::pin(std::future::ready(self.try_reserve(reservation)))
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        assert!(std::mem::replace(&mut *self.0.lock(), true), "the first call");
        Ok(())
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {}

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

#[tokio::test(start_paused = true)]
async fn panicking_backend_does_not_block_next_request() {
    let builder = builder().clock(TokioClock::new()).backend(Arc::new(Panics::default()));
    let limiter = builder.build().unwrap();
    tokio::spawn(limiter.acquire("k", &Cost::new())).await.unwrap_err();
    let next = limiter.acquire("k", &Cost::new());
    tokio::time::timeout(Duration::from_secs(5), next).await.expect("stranded").unwrap();
    assert_eq!(limiter.stats("k").waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn backend_call_does_not_count_as_waiting() {
    let builder = builder().clock(TokioClock::new()).max_waiting(0);
    let limiter = builder.backend(Arc::new(SingleSlotBackend::default())).build().unwrap();
    limiter.acquire("b", &Cost::new()).await.unwrap();
}

#[test]
fn limits_of_decide_and_acquire_apply_to_shared_quota() {
    let limiter = builder().quota("g*", Quota::new().rpm(2).shared()).build().unwrap();
    limiter.try_acquire("g1", &Cost::new()).unwrap();
    let limits = Quota::new().rpm(1);
    let decided = limiter.acquire("g1", &Cost::new()).limits(&limits).decide().is_allowed();
    let acquired = limiter.acquire("g1", &Cost::new()).limits(&limits).try_now();
    assert_eq!(decided, acquired.is_ok());
}

#[test]
fn debt_after_prune_is_charged() {
    let clock = ManualClock::new();
    let quota = Quota::new().tpm(60).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("*", quota).clock(clock.clone()).build().unwrap();
    let permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.state().prune();
    permit.settle(&tokens(50));
    assert_eq!(limiter.stats("k").limits[0].used, 50);
}
