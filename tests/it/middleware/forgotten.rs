//! Services and requests that their tasks keep without polling them: nobody waits behind one for longer than a
//! second.

use std::cell::Cell;
use std::pin::{Pin, pin};

use futures_util::future::join_all;
use futures_util::poll;
use paceline::limiter::{Acquire, AcquireError};
use tokio::time::{sleep, timeout};

use super::*;

/// The report of a user: a request is the head, a service is forgotten behind it, and another one waits.
#[tokio::test(start_paused = true)]
async fn service_behind_forgotten_one_is_ready_in_time() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let request = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    let mut forgotten = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut forgotten).await);
    let mut service = tokens(&limiter).key("k").layer(echo());
    let called = tokio::spawn(async move { service.ready().await.unwrap().call(1).await });
    drop(request.await.unwrap().unwrap());
    assert_eq!(limiter.now() - begin, S);
    called.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, 2 * S);
    // The forgotten one still works.
    forgotten.ready().await.unwrap().call(1).await.unwrap();
    assert_eq!(limiter.now() - begin, 3 * S);
}

#[tokio::test(start_paused = true)]
async fn wait_for_capacity_beside_forgotten_service_ends_in_time() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let request = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    let mut forgotten = tokens(&limiter).key("k").layer(echo());
    assert!(!is_ready(&mut forgotten).await);
    let waiting = limiter.wait_for_capacity("k", &Cost::new());
    let waiting = tokio::spawn(waiting);
    drop(request.await.unwrap().unwrap());
    waiting.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, 2 * S);
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_is_passed_and_returns_to_its_place() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let begin = limiter.now();
    let mut forgotten = pin!(limiter.acquire("k", &Cost::new()));
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    let others: Vec<_> = (0..4).map(|_| tokio::spawn(limiter.acquire("k", &Cost::new()))).collect();
    sleep(S + S / 2).await;
    let is_granted = |other: &tokio::task::JoinHandle<_>| other.is_finished();
    assert_eq!(others.iter().filter(|other| is_granted(other)).count(), 1);
    // It arrived before the others.
    forgotten.await.unwrap().settle(&Cost::new());
    assert_eq!(limiter.now() - begin, 2 * S);
    for other in others {
        other.await.unwrap().unwrap().settle(&Cost::new());
    }
    assert_eq!(limiter.now() - begin, 5 * S);
}

/// Returns a limiter whose limit is used up, and many requests that wait for it and are kept.
async fn with_many_forgotten() -> (Limiter, Vec<Pin<Box<Acquire>>>) {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let mut forgotten: Vec<_> =
        (0..150).map(|_| Box::pin(limiter.acquire("k", &Cost::new()))).collect();
    for forgotten in &mut forgotten {
        assert!(futures_util::poll!(forgotten).is_pending());
    }
    (limiter, forgotten)
}

#[tokio::test(start_paused = true)]
async fn many_forgotten_requests_are_passed_in_one_step() {
    let (limiter, _forgotten) = with_many_forgotten().await;
    sleep(2 * S).await;
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    let took = limiter.now() - begin;
    assert!(took <= 2 * S, "{took:?}");
}

/// The requests that are forgotten only after the next one waits.
#[tokio::test(start_paused = true)]
async fn requests_forgotten_behind_others_are_passed_in_time() {
    let (limiter, _forgotten) = with_many_forgotten().await;
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new());
    let took = limiter.now() - begin;
    assert!(took <= S + 2 * S, "{took:?}");
}

/// Counts the polls of a future.
async fn counted<T>(future: impl Future<Output = T>, polls: &Cell<usize>) -> T {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        polls.set(polls.get() + 1);
        future.as_mut().poll(cx)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_day_are_not_polled_meanwhile() {
    const DAY: Duration = Duration::from_secs(86_400);
    let limiter = builder().quota("k", Quota::new().rpd(300)).build().unwrap();
    let use_up = |count| limiter.try_acquire("k", &Cost::new().requests(count)).unwrap();
    use_up(300).settle(&Cost::new().requests(300));
    let polls = Cell::new(0);
    let acquire = || async {
        counted(limiter.acquire("k", &Cost::new()), &polls).await.unwrap().settle(&Cost::new());
    };
    let begin = limiter.now();
    join_all((0..300).map(|_| acquire())).await;
    assert!(limiter.now() - begin > DAY / 2 && polls.get() < 3_000, "{} polls", polls.get());
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_that_waits_for_a_day_is_passed_once_another_fits() {
    let limiter = builder().quota("k", Quota::new().rpd(300)).build().unwrap();
    let used = Cost::new().requests(300);
    limiter.try_acquire("k", &used).unwrap().settle(&used);
    let (mut forgotten, mut second) =
        (pin!(limiter.acquire("k", &used)), pin!(limiter.acquire("k", &used)));
    assert!(poll!(&mut forgotten).is_pending());
    assert!(timeout(Duration::from_secs(3_600), &mut second).await.is_err());
    limiter.quotas().set("k", &Quota::new().rpd(700)).unwrap();
    let begin = limiter.now();
    second.await.unwrap();
    assert!(limiter.now() - begin < S, "{:?}", limiter.now() - begin);
}

/// Returns a limiter whose requests of today are used up.
fn used_up(quota: Quota, max_waiting: usize) -> Limiter {
    let limiter = builder().quota("k", quota.rpd(300)).max_waiting(max_waiting).build().unwrap();
    let used = Cost::new().requests(300);
    limiter.try_acquire("k", &used).unwrap().settle(&used);
    limiter
}

#[tokio::test(start_paused = true)]
async fn capacity_is_awaited_by_one_that_was_not_polled_for_a_day() {
    let limiter = used_up(Quota::new().concurrency(10), 9);
    let permit = limiter.try_acquire("k", &Cost::new().requests(0)).unwrap();
    let mut capacity = pin!(limiter.wait_for_capacity("k", &Cost::new()));
    assert!(poll!(&mut capacity).is_pending());
    let _waits = tokio::spawn(limiter.acquire("k", &Cost::new()));
    sleep(S).await;
    assert!(poll!(&mut capacity).is_pending());
    sleep(60 * S).await;
    permit.settle(&Cost::new().requests(0));
    sleep(S).await;
    assert!(poll!(&mut capacity).is_pending());
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_does_not_starve_those_that_wait_briefly() {
    for attempt in [0, 1, 2] {
        let limiter = builder().quota("k", Quota::new().rpm(60)).max_waiting(1).build().unwrap();
        limiter
            .try_acquire("k", &Cost::new().requests(60))
            .unwrap()
            .settle(&Cost::new().requests(60));
        let mut forgotten = pin!(limiter.acquire("k", &Cost::new()));
        assert!(poll!(&mut forgotten).is_pending());
        sleep(120 * S).await;
        let mut granted = 0;
        for _ in 0..5 {
            let is_granted = match attempt {
                0 => limiter.try_acquire("k", &Cost::new()).is_ok(),
                1 => limiter.acquire("k", &Cost::new()).max_wait(S / 5).await.is_ok(),
                _ => limiter.acquire("k", &Cost::new()).await.is_ok(),
            };
            granted += usize::from(is_granted);
            sleep(S).await;
        }
        assert!(granted >= 2, "{attempt}: {granted}");
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_gives_up_its_slot_also_for_a_day() {
    let limiter = used_up(Quota::new(), 2);
    let mut forgotten = pin!(limiter.acquire("k", &Cost::new()));
    assert!(poll!(&mut forgotten).is_pending());
    let _waits = tokio::spawn(limiter.acquire("k", &Cost::new()));
    sleep(60 * S).await;
    let wait = || timeout(S, limiter.acquire("k", &Cost::new()));
    assert!(matches!(wait().await, Ok(Err(AcquireError::QueueFull { .. }))));
    sleep(10 * S).await;
    assert!(wait().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn deadline_behind_requests_that_are_not_polled_is_judged_soon() {
    let a_minute = Quota::new().rpm(1).with_algorithm(Algorithm::TokenBucket);
    let limiter = builder().quota("k", a_minute).build().unwrap();
    limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    let _waits: Vec<_> =
        (0..30).map(|_| tokio::spawn(limiter.acquire("k", &Cost::new()))).collect();
    sleep(10 * S).await;
    let begin = limiter.now();
    assert!(limiter.acquire("k", &Cost::new()).max_wait(600 * S).await.is_err());
    assert!(limiter.now() - begin < S, "{:?}", limiter.now() - begin);
    let in_time = limiter.acquire("k", &Cost::new()).max_wait(3_600 * S).await;
    assert!(in_time.is_ok());
}
