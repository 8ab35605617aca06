//! Requests under several keys.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{
    Acquire, AcquireError, Code, Event, Limiter, ManualClock, Permit, TokioClock,
};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Quota};

use super::{builder, settle_down};

/// Returns a limiter with these quotas as token buckets, on tokio's paused clock.
fn limited(quotas: &[(&str, Quota)]) -> Limiter {
    let add = |builder: paceline::limiter::Builder, (key, quota): &(&str, Quota)| {
        builder.quota(*key, quota.clone().with_algorithm(Algorithm::TokenBucket))
    };
    quotas.iter().fold(builder().clock(TokioClock::new()), add).build().unwrap()
}

fn used(limiter: &Limiter, key: &str) -> u64 {
    limiter.stats(key).limits[0].used
}

fn poll(acquire: &mut Acquire) -> Poll<Result<Permit, AcquireError>> {
    Pin::new(acquire).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn request_charges_all_keys_or_none() {
    let limiter = limited(&[("tenant", Quota::new().rpm(2)), ("model", Quota::new().rpm(9))]);
    let keys = ["tenant", "model"];
    limiter.acquire_all(&keys, &Cost::new()).await.unwrap();
    limiter.acquire_all(&keys, &Cost::new()).await.unwrap();
    let refused = limiter.acquire_all(&keys, &Cost::new()).try_now().unwrap_err();
    assert_eq!((&*refused.key, refused.code), ("tenant", Code::RpmExceeded));
    assert_eq!((used(&limiter, "tenant"), used(&limiter, "model")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn longest_wait_of_all_keys_is_named() {
    let limiter = limited(&[("a", Quota::new().rpm(60)), ("b", Quota::new().rpm(6))]);
    limiter.acquire_all(&["a", "b"], &Cost::new().requests(6)).await.unwrap();
    limiter.acquire("a", &Cost::new().requests(54)).await.unwrap();
    let refused = limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap_err();
    assert_eq!((&*refused.key, refused.retry_after()), ("b", Some(Duration::from_secs(10))));
    let begin = limiter.now();
    limiter.acquire_all(&["a", "b"], &Cost::new()).await.unwrap();
    assert_eq!((limiter.now() - begin).as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn permit_end_applies_to_every_key() {
    let limiter =
        limited(&[("a", Quota::new().concurrency(1)), ("b", Quota::new().concurrency(5))]);
    let held = |key: &str| limiter.stats(key).limits[0].held;
    let permit = limiter.acquire_all(&["a", "b"], &Cost::new()).await.unwrap();
    assert_eq!((permit.key().as_str(), held("a"), held("b")), ("a", 1, 1));
    permit.settle(&Cost::new());
    assert_eq!((held("a"), held("b")), (0, 0));
    limiter.acquire_all(&["a", "b"], &Cost::new()).await.unwrap().release();
    drop(limiter.acquire_all(&["a", "b"], &Cost::new()).await.unwrap());
    assert_eq!((held("a"), held("b")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn key_named_twice_counts_once() {
    let limiter = limited(&[("a", Quota::new().rpm(9))]);
    limiter.acquire_all(&["a", "a"], &Cost::new()).await.unwrap();
    assert_eq!(used(&limiter, "a"), 1);
}

#[tokio::test(start_paused = true)]
async fn exhausted_tenant_delays_no_other_tenant_of_a_model() {
    let limiter = limited(&[
        ("poor", Quota::new().rpm(1)),
        ("rich", Quota::new().rpm(600)),
        ("model", Quota::new().rpm(60)),
    ]);
    limiter.acquire_all(&["poor", "model"], &Cost::new().requests(1)).await.unwrap();
    let waiting: Vec<_> = (0..5)
        .map(|_| tokio::spawn(limiter.acquire_all(&["poor", "model"], &Cost::new())))
        .collect();
    settle_down().await;
    let begin = limiter.now();
    for _ in 0..59 {
        limiter.acquire_all(&["rich", "model"], &Cost::new()).await.unwrap();
    }
    assert_eq!(limiter.now(), begin, "the model has 59 requests left");
    limiter.acquire_all(&["rich", "model"], &Cost::new()).await.unwrap();
    assert_eq!((limiter.now() - begin).as_secs(), 1);
    waiting.iter().for_each(|task| task.abort());
}

#[tokio::test(start_paused = true)]
async fn waiter_from_another_queue_keeps_order_of_arrival() {
    let limiter = limited(&[("tenant", Quota::new().rpm(6)), ("model", Quota::new().rpm(6))]);
    limiter.acquire("tenant", &Cost::new().requests(6)).await.unwrap();
    let early = tokio::spawn(limiter.acquire_all(&["tenant", "model"], &Cost::new()));
    settle_down().await;
    limiter.acquire("model", &Cost::new().requests(6)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The tenant has capacity after 10 s, the model after 12 s; this request came later.
    let late = tokio::spawn(limiter.acquire("model", &Cost::new()));
    settle_down().await;
    assert_eq!((limiter.stats("tenant").waiting, limiter.stats("model").waiting), (1, 1));
    tokio::time::sleep(Duration::from_millis(8_500)).await;
    assert!(early.is_finished() && !late.is_finished());
}

/// Both keys are in constant demand and never free at the same moment.
#[tokio::test(start_paused = true)]
async fn keys_never_free_together_are_granted_eventually() {
    let limiter =
        limited(&[("a", Quota::new().concurrency(1)), ("b", Quota::new().concurrency(1))]);
    let busy = |key: &'static str, offset: u64| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(offset)).await;
            loop {
                // Three tasks per key take turns, so one always waits.
                let permit = limiter.acquire(key, &Cost::new()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(1_000)).await;
                drop(permit);
            }
        })
    };
    let others: Vec<_> = (0..3).flat_map(|_| [busy("a", 0), busy("b", 500)]).collect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let begin = limiter.now();
    let both = limiter.acquire_all(&["a", "b"], &Cost::new());
    let both = tokio::time::timeout(Duration::from_secs(60), both).await;
    both.expect("the request starves").unwrap();
    assert!((limiter.now() - begin).as_secs() <= 15);
    others.iter().for_each(|task| task.abort());
}

#[tokio::test(start_paused = true)]
async fn dropped_waiter_leaves_every_queue() {
    let limiter =
        limited(&[("a", Quota::new().concurrency(1)), ("b", Quota::new().concurrency(1))]);
    let held = limiter.acquire("b", &Cost::new()).await.unwrap();
    let mut waiting = limiter.acquire_all(&["a", "b"], &Cost::new());
    assert!(poll(&mut waiting).is_pending());
    drop(waiting);
    assert_eq!((limiter.stats("a").waiting, limiter.stats("b").waiting), (0, 0));
    drop(held);
    limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap();
}

#[tokio::test(start_paused = true)]
async fn gate_of_several_keys_opens_when_all_fit() {
    let limiter = limited(&[("a", Quota::new().rpm(60)), ("b", Quota::new().rpm(6))]);
    limiter.acquire_all(&["a", "b"], &Cost::new().requests(6)).await.unwrap();
    limiter.acquire("a", &Cost::new().requests(54)).await.unwrap();
    let mut gate = limiter.gate(&["a", "b"]).unwrap();
    let begin = limiter.now();
    std::future::poll_fn(|cx| gate.poll_open(&Cost::new(), None, cx)).await;
    assert_eq!((limiter.now() - begin).as_secs(), 10);
    assert_eq!((used(&limiter, "a"), used(&limiter, "b")), (50, 5));
}

#[tokio::test(start_paused = true)]
async fn every_key_emits_granted_and_settled() {
    let limiter = limited(&[("a", Quota::new().rpm(60)), ("b", Quota::new().rpm(6))]);
    let mut events = limiter.subscribe();
    limiter.acquire_all(&["a", "b"], &Cost::new()).await.unwrap().settle(&Cost::new());
    let mut reported = Vec::new();
    while let Ok(event) = events.try_recv() {
        match event {
            Event::Granted { key, .. } => reported.push(format!("{key} granted")),
            Event::Settled { key, .. } => reported.push(format!("{key} settled")),
            _ => {}
        }
    }
    assert_eq!(reported, ["a granted", "b granted", "a settled", "b settled"]);
}

/// Two fixed windows that reset at different times: the refusal names a time at which both have
/// capacity.
#[test]
fn refusal_names_time_when_all_keys_fit() {
    let clock = ManualClock::new();
    let window = |limit| Quota::new().rpm(limit).with_algorithm(Algorithm::FixedWindow);
    let limiter = Limiter::builder().quota("a", window(1)).quota("b", window(1));
    let limiter = limiter.clock(clock.clone()).build().unwrap();
    limiter.try_acquire("a", &Cost::new()).unwrap();
    clock.advance(Duration::from_millis(59_700));
    limiter.try_acquire("b", &Cost::new()).unwrap();
    let refused = limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap_err();
    let Wait::At(time) = refused.wait else { panic!("{refused:?}") };
    clock.advance_to(time - Duration::from_nanos(1));
    limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap_err();
    clock.advance_to(time);
    limiter.acquire_all(&["a", "b"], &Cost::new()).try_now().unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_waiting_for_third_key_leaves_earlier_queues() {
    let one = || Quota::new().concurrency(1);
    let limiter = limited(&[("tenant", one()), ("model", one()), ("account", one())]);
    let of_tenant = limiter.acquire("tenant", &Cost::new()).await.unwrap();
    let of_account = limiter.acquire("account", &Cost::new()).await.unwrap();
    let mut moving = limiter.acquire_all(&["tenant", "model", "account"], &Cost::new());
    assert!(poll(&mut moving).is_pending());
    assert_eq!(limiter.stats("tenant").waiting, 1);
    drop(of_tenant);
    assert!(poll(&mut moving).is_pending());
    let waiting = ["tenant", "model", "account"].map(|key| limiter.stats(key).waiting);
    assert_eq!(waiting, [0, 0, 1]);
    // Other requests can use the keys that it has passed.
    drop(limiter.try_acquire("tenant", &Cost::new()).unwrap());
    drop(limiter.try_acquire("model", &Cost::new()).unwrap());
    drop(of_account);
    assert!(poll(&mut moving).is_ready());
}

#[tokio::test(start_paused = true)]
async fn decide_of_several_keys_returns_longest_wait() {
    let slow = limited(&[("tenant", Quota::new().rpm(60)), ("model", Quota::new().rpm(1))]);
    slow.try_acquire("tenant", &Cost::new()).unwrap().settle(&Cost::new());
    let decide = || slow.acquire_all(&["tenant", "model"], &Cost::new().requests(1)).decide();
    assert!(decide().is_allowed());
    slow.try_acquire("model", &Cost::new()).unwrap().settle(&Cost::new());
    let all = Cost::new().requests(59);
    slow.try_acquire("tenant", &all).unwrap().settle(&all);
    let decision = decide();
    assert_eq!((decision.code, decision.key.as_str()), (Code::RpmExceeded, "model"));
    let refused = slow.acquire_all(&["tenant", "model"], &Cost::new()).try_now().unwrap_err();
    assert_eq!(decision.refused(), Some(refused));
}

#[tokio::test(start_paused = true)]
async fn decide_accepts_custom_dimension_counted_by_another_key() {
    let window = paceline::quota::Window::MINUTE;
    let images = Limit::new(Dimension::custom("images"), 2, window).unwrap();
    let quotas = [("tenant", Quota::new().rpm(9)), ("model", Quota::new().limit(images))];
    let limiter = limited(&quotas);
    let request =
        |images| limiter.acquire_all(&["tenant", "model"], &Cost::new().custom("images", images));
    assert!(request(2).decide().is_allowed());
    let decision = request(3).decide();
    assert_eq!((decision.code, decision.key.as_str()), (Code::ExceedsCapacity, "model"));
    assert!(request(2).try_now().is_ok());
}
