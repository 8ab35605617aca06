//! `call` and the future that it returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paceline::limiter::AcquireError;
use paceline::middleware::{Classified, RateLimitError, RateLimitLayer};
use paceline::quota::{Cost, Quota};
use parking_lot::Mutex;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

use super::inner::{InnerError, Strict};
use super::{S, available, echo, held, limiter, settle_down, tokens};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn fitting_request_uses_ready_service() {
    let limiter = limiter(Quota::new().rpm(600));
    let inner = echo();
    let (clones, calls) = (Arc::clone(&inner.clones), Arc::clone(&inner.calls));
    let mut service = tokens(&limiter).layer(inner);
    for number in 0..10 {
        assert_eq!(service.ready().await.unwrap().call(number).await.unwrap(), number);
    }
    assert_eq!((clones.load(Ordering::Relaxed), calls.load(Ordering::Relaxed)), (0, 10));
}

#[tokio::test(start_paused = true)]
async fn request_after_wait_uses_ready_clone() {
    let limiter = limiter(Quota::new().rpm(1));
    // Becomes ready on every third poll; a call before that panics.
    let polls = AtomicUsize::new(0);
    let inner = echo().with_readiness(move || match polls.fetch_add(1, Ordering::Relaxed) % 3 {
        2 => Poll::Ready(Ok(())),
        _ => Poll::Pending,
    });
    let mut service = tokens(&limiter).layer(inner);
    let begin = limiter.now();
    for number in 0..5 {
        assert_eq!(service.ready().await.unwrap().call(number).await.unwrap(), number);
    }
    assert_eq!(limiter.now() - begin, 240 * S);
}

/// Returns a layer for requests that are their key, around a service that takes one request at a
/// time.
fn one_at_a_time(
    reject: bool,
) -> impl Clone + Service<&'static str, Response = (), Error = RateLimitError> {
    let quota = Quota::new().rpm(1).with_algorithm(paceline::quota::Algorithm::TokenBucket);
    let limiter = super::builder().quota("scarce", quota).build().unwrap();
    let layer = RateLimitLayer::new(limiter)
        .classify(|key: &&'static str| Classified::new(*key, Cost::new()))
        .observe(|_: &()| None);
    let layer = if reject { layer.reject() } else { layer };
    layer.layer(ConcurrencyLimit::new(Strict::new(|_| async { Ok(()) }), 1))
}

#[tokio::test(start_paused = true)]
async fn request_waiting_for_quota_does_not_block_inner_service() {
    let mut service = one_at_a_time(false);
    service.ready().await.unwrap().call("scarce").await.unwrap();
    let mut waiting = Box::pin(service.ready().await.unwrap().call("scarce"));
    assert!(poll(&mut waiting).is_pending());
    let others = service.clone().oneshot("plenty");
    tokio::time::timeout(Duration::from_secs(1), others).await.unwrap().unwrap();
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_request_does_not_block_inner_service() {
    let mut service = one_at_a_time(true);
    service.ready().await.unwrap().call("scarce").await.unwrap();
    service.ready().await.unwrap().call("scarce").await.unwrap_err();
    let others = service.clone().oneshot("plenty");
    tokio::time::timeout(Duration::from_secs(1), others).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_are_sent_in_order_of_call_not_of_poll() {
    let limiter = limiter(Quota::new().rpm(60));
    limiter.acquire("k", &Cost::new().requests(60)).await.unwrap();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&sent);
    let mut service = tokens(&limiter).layer(Strict::new(move |number: u64| {
        log.lock().push(number);
        async move { Ok(number) }
    }));
    let mut futures = Vec::new();
    for number in 0..9 {
        futures.push(service.ready().await.unwrap().call(number));
    }
    // The odd numbers first, each half in reverse.
    futures.reverse();
    let (odd, even): (Vec<_>, Vec<_>) = (0..).zip(futures).partition(|(place, _)| place % 2 == 1);
    let mut tasks = Vec::new();
    for (_, future) in odd.into_iter().chain(even) {
        tasks.push(tokio::spawn(future));
        settle_down().await;
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(*sent.lock(), (0..9).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn future_dropped_while_waiting_leaves_queue_uncharged() {
    let limiter = limiter(Quota::new().tpm(60));
    let mut service = tokens(&limiter).layer(echo());
    service.ready().await.unwrap().call(60).await.unwrap();
    let mut big = service.ready().await.unwrap().call(60);
    assert!(poll(&mut big).is_pending());
    let mut unpolled = service.ready().await.unwrap().call(60);
    let small = tokio::spawn(service.ready().await.unwrap().call(5));
    settle_down().await;
    assert_eq!(limiter.stats("k").waiting, 3);
    let begin = limiter.now();
    unpolled = std::mem::replace(&mut big, unpolled);
    drop((big, unpolled));
    small.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, 5 * S);
    assert_eq!((available(&limiter, "k"), limiter.stats("k").waiting), (vec![0], 0));
}

/// Returns a service that never responds.
fn silent() -> Strict<u64, u64> {
    Strict::new(|_| std::future::pending())
}

#[tokio::test(start_paused = true)]
async fn future_dropped_before_first_poll_releases() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(2));
    let mut service = tokens(&limiter).layer(silent());
    let future = service.ready().await.unwrap().call(20);
    assert_eq!(available(&limiter, "k"), [8, 40, 1]);
    drop(future);
    assert_eq!(available(&limiter, "k"), [9, 60, 2]);
}

#[tokio::test(start_paused = true)]
async fn future_dropped_after_sending_keeps_charge() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(2));
    let mut service = tokens(&limiter).layer(silent());
    let mut future = service.ready().await.unwrap().call(20);
    assert!(poll(&mut future).is_pending());
    drop(future);
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40, 2], vec![0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn inner_error_keeps_charge() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(2));
    let mut service =
        tokens(&limiter).layer(Strict::<u64, u64>::new(|_| async { Err(InnerError) }));
    let error = service.ready().await.unwrap().call(20).await.unwrap_err();
    assert_eq!(error.into_inner::<InnerError>().unwrap(), InnerError);
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40, 2], vec![0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn observed_cost_of_response_is_charged() {
    let limiter = limiter(Quota::new().tpm(60));
    let layer = tokens(&limiter).observe(|response: &u64| Some(Cost::new().tokens(response / 2)));
    layer.layer(echo()).oneshot(20).await.unwrap();
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![50], vec![0]));
}

#[tokio::test(start_paused = true)]
async fn panic_in_inner_call_releases() {
    let limiter = limiter(Quota::new().rpm(1).tpm(60));
    let broken = Strict::<u64, u64>::new(|_| -> std::future::Ready<_> { panic!("expected") });
    let layer = tokens(&limiter);
    for _ in 0..2 {
        // Once immediately and once after a wait.
        let sent = tokio::spawn(layer.layer(broken.clone()).oneshot(20));
        assert!(sent.await.unwrap_err().is_panic());
        assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![1, 60], vec![0, 0]));
        layer.layer(echo()).oneshot(0).await.unwrap();
        let waiting = tokio::spawn(layer.layer(broken.clone()).oneshot(20));
        assert!(waiting.await.unwrap_err().is_panic());
        assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![1, 60], vec![0, 0]));
    }
}

#[tokio::test(start_paused = true)]
async fn panic_in_inner_future_keeps_charge_and_frees_concurrency() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(1));
    let broken = Strict::<u64, u64>::new(|_| async { panic!("expected") });
    let sent = tokio::spawn(tokens(&limiter).layer(broken).oneshot(20));
    assert!(sent.await.unwrap_err().is_panic());
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40, 1], vec![0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn clone_failing_to_become_ready_releases() {
    let limiter = limiter(Quota::new().rpm(1));
    let broken = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&broken);
    let inner = echo().with_readiness(move || match state.load(Ordering::Relaxed) {
        true => Poll::Ready(Err(InnerError)),
        false => Poll::Ready(Ok(())),
    });
    let mut service = tokens(&limiter).layer(inner);
    service.ready().await.unwrap().call(0).await.unwrap();
    let mut future = service.ready().await.unwrap().call(0);
    broken.store(true, Ordering::Relaxed);
    assert_eq!((&mut future).await.unwrap_err().into_inner::<InnerError>().unwrap(), InnerError);
    // The reservation is released even before the future is dropped.
    assert_eq!(available(&limiter, "k"), [1]);
    drop(future);
    let error = service.ready().await.unwrap_err();
    assert_eq!(error.into_inner::<InnerError>().unwrap(), InnerError);
}

#[tokio::test(start_paused = true)]
async fn earlier_of_deadline_and_max_wait_applies() {
    let limiter = limiter(Quota::new().rpm(1));
    let begin = limiter.now();
    let layer = tokens(&limiter).classify(move |_: &u64| {
        let mut classified = Classified::new("k", Cost::new());
        classified.deadline = Some(begin + 30 * S);
        classified
    });
    layer.layer(echo()).oneshot(0).await.unwrap();
    for (longest, expected) in [(10, 10), (50, 30), (90, 30)] {
        let layer = layer.clone().max_wait(Duration::from_secs(longest));
        let error = layer.layer(echo()).oneshot(0).await.unwrap_err();
        let RateLimitError::Limited(AcquireError::DeadlineExceeded { deadline, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(deadline - begin, Duration::from_secs(expected));
    }
    assert_eq!(limiter.now(), begin);
}
