//! `call`, and the future that it returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::limiter::AcquireError;
use tollgate::middleware::{Classified, RateLimitError, RateLimitLayer};
use tollgate::quota::{Cost, Quota};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

use super::inner::{Oops, Strict};
use super::{S, available, echo, held, limiter, settle_down, tokens};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fits_goes_through_the_service_that_was_made_ready() {
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
async fn a_request_that_waited_goes_through_a_clone_made_ready_for_it() {
    let limiter = limiter(Quota::new().rpm(1));
    // Becomes ready on every third try; a service called before that panics.
    let tries = AtomicUsize::new(0);
    let inner = echo().readying(move || match tries.fetch_add(1, Ordering::Relaxed) % 3 {
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

/// A layer for requests that name their key, around a service that takes one request at a time.
fn one_at_a_time(
    reject: bool,
) -> impl Clone + Service<&'static str, Response = (), Error = RateLimitError> {
    let quota = Quota::new().rpm(1).with_algorithm(tollgate::quota::Algorithm::TokenBucket);
    let limiter = super::builder().quota("scarce", quota).build().unwrap();
    let layer = RateLimitLayer::new(limiter)
        .classify(|key: &&'static str| Classified::new(*key, Cost::new()))
        .observe(|_: &()| None);
    let layer = if reject { layer.reject() } else { layer };
    layer.layer(ConcurrencyLimit::new(Strict::new(|_| async { Ok(()) }), 1))
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_quota_does_not_keep_the_inner_service_from_others() {
    let mut service = one_at_a_time(false);
    service.ready().await.unwrap().call("scarce").await.unwrap();
    let mut waiting = Box::pin(service.ready().await.unwrap().call("scarce"));
    assert!(poll(&mut waiting).is_pending());
    let others = service.clone().oneshot("plenty");
    tokio::time::timeout(Duration::from_secs(1), others).await.unwrap().unwrap();
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_is_refused_does_not_keep_the_inner_service_from_others() {
    let mut service = one_at_a_time(true);
    service.ready().await.unwrap().call("scarce").await.unwrap();
    service.ready().await.unwrap().call("scarce").await.unwrap_err();
    let others = service.clone().oneshot("plenty");
    tokio::time::timeout(Duration::from_secs(1), others).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_order_of_calls_counts_and_not_the_order_of_polls() {
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
    // Odd ones first, and the last before the first.
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
async fn dropped_while_it_waits_it_leaves_the_queue_and_takes_nothing() {
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

/// A service that never answers.
fn silent() -> Strict<u64, u64> {
    Strict::new(|_| std::future::pending())
}

#[tokio::test(start_paused = true)]
async fn dropped_before_its_first_poll_it_never_left() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(2));
    let mut service = tokens(&limiter).layer(silent());
    let future = service.ready().await.unwrap().call(20);
    assert_eq!(available(&limiter, "k"), [8, 40, 1]);
    drop(future);
    assert_eq!(available(&limiter, "k"), [9, 60, 2]);
}

#[tokio::test(start_paused = true)]
async fn dropped_after_it_was_sent_it_keeps_its_charge() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(2));
    let mut service = tokens(&limiter).layer(silent());
    let mut future = service.ready().await.unwrap().call(20);
    assert!(poll(&mut future).is_pending());
    drop(future);
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40, 2], vec![0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn an_inner_error_keeps_the_charge() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(2));
    let mut service = tokens(&limiter).layer(Strict::<u64, u64>::new(|_| async { Err(Oops) }));
    let error = service.ready().await.unwrap().call(20).await.unwrap_err();
    assert_eq!(error.into_inner::<Oops>().unwrap(), Oops);
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40, 2], vec![0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn what_the_response_says_is_charged_where_that_is_known() {
    let limiter = limiter(Quota::new().tpm(60));
    let layer = tokens(&limiter).observe(|response: &u64| Some(Cost::new().tokens(response / 2)));
    layer.layer(echo()).oneshot(20).await.unwrap();
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![50], vec![0]));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_inner_call_releases() {
    let limiter = limiter(Quota::new().rpm(1).tpm(60));
    let broken = Strict::<u64, u64>::new(|_| -> std::future::Ready<_> { panic!("as it should") });
    let layer = tokens(&limiter);
    for _ in 0..2 {
        // Once on the way in, and once after a wait.
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
async fn a_panic_while_it_is_under_way_keeps_the_charge_and_frees_its_place() {
    let limiter = limiter(Quota::new().rpm(9).tpm(60).concurrency(1));
    let broken = Strict::<u64, u64>::new(|_| async { panic!("as it should") });
    let sent = tokio::spawn(tokens(&limiter).layer(broken).oneshot(20));
    assert!(sent.await.unwrap_err().is_panic());
    assert_eq!((available(&limiter, "k"), held(&limiter, "k")), (vec![8, 40, 1], vec![0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_fails_to_become_ready_releases_at_once() {
    let limiter = limiter(Quota::new().rpm(1));
    let broken = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&broken);
    let inner = echo().readying(move || match state.load(Ordering::Relaxed) {
        true => Poll::Ready(Err(Oops)),
        false => Poll::Ready(Ok(())),
    });
    let mut service = tokens(&limiter).layer(inner);
    service.ready().await.unwrap().call(0).await.unwrap();
    let mut future = service.ready().await.unwrap().call(0);
    broken.store(true, Ordering::Relaxed);
    assert_eq!((&mut future).await.unwrap_err().into_inner::<Oops>().unwrap(), Oops);
    // Though the future is still there.
    assert_eq!(available(&limiter, "k"), [1]);
    drop(future);
    let error = service.ready().await.unwrap_err();
    assert_eq!(error.into_inner::<Oops>().unwrap(), Oops);
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_deadline_and_longest_wait_counts() {
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
