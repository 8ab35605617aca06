use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{AcquireError, Code, Event, Limiter, ManualClock, RateLimited};
use paceline::quota::{Algorithm, Cost, Quota};
use paceline_testing::full::full_or;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::{builder, manual, paused, settle_down, tokens};

/// Starts one task per cost, in order, and records the seconds from the start to each grant.
fn start(limiter: &Limiter, costs: &[u64]) -> Arc<Mutex<Vec<(usize, u64)>>> {
    let granted = Arc::new(Mutex::new(Vec::new()));
    let begin = limiter.now();
    for (number, &cost) in costs.iter().enumerate() {
        let mut acquire = limiter.acquire("k", &tokens(cost));
        let arrived = acquire.arrive();
        let (limiter, granted) = (limiter.clone(), Arc::clone(&granted));
        tokio::spawn(async move {
            let permit = match arrived {
                Some(result) => result.unwrap(),
                None => acquire.await.unwrap(),
            };
            granted.lock().push((number, (limiter.now() - begin).as_secs()));
            permit.settle(&tokens(cost));
        });
    }
    granted
}

#[tokio::test(start_paused = true)]
async fn waiters_are_granted_in_order_and_large_cost_is_not_starved() {
    let limiter = paused(Quota::new().tpm(60));
    let granted = start(&limiter, &[60, 5, 50, 1, 1]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(*granted.lock(), [(0, 0), (1, 5), (2, 55), (3, 56), (4, 57)]);
}

#[tokio::test(start_paused = true)]
async fn newcomer_does_not_overtake_waiters() {
    let limiter = paused(Quota::new().tpm(60));
    let _granted = start(&limiter, &[30, 60]);
    settle_down().await;
    let refused = limiter.try_acquire("k", &tokens(1)).unwrap_err();
    assert_eq!(refused.code, Code::OthersWaiting);
    assert_eq!(limiter.stats("k").waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn acquire_dropped_while_waiting_wakes_next() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap().settle(&tokens(60));
    let mut big = limiter.acquire("k", &tokens(60));
    assert!(big.arrive().is_none());
    let granted = start(&limiter, &[2]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(big);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(*granted.lock(), [(0, 2)]);
    assert_eq!(limiter.stats("k").waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn arrive_returns_immediate_grants_and_refusals() {
    let limiter = paused(Quota::new().rpm(1));
    assert!(matches!(limiter.acquire("k", &Cost::new()).arrive(), Some(Ok(_))));
    assert!(limiter.acquire("k", &Cost::new()).arrive().is_none());
    let two = Cost::new().requests(2);
    assert!(matches!(limiter.acquire("k", &two).arrive(), Some(Err(AcquireError::Refused(_)))));
}

#[tokio::test(start_paused = true)]
async fn settle_and_release_wake_first_waiter_immediately() {
    for release in [true, false] {
        let limiter = paused(Quota::new().concurrency(1));
        let permit = limiter.acquire("k", &Cost::new()).await.unwrap();
        let granted = start(&limiter, &[0]);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(granted.lock().is_empty());
        if release {
            permit.release()
        } else {
            permit.settle(&Cost::new())
        }
        settle_down().await;
        assert_eq!(*granted.lock(), [(0, 5)]);
    }
}

#[tokio::test(start_paused = true)]
async fn raised_quota_wakes_first_waiter_immediately() {
    let limiter = paused(Quota::new().tpm(60));
    let granted = start(&limiter, &[60, 60]);
    settle_down().await;
    limiter.quotas().set("k", &Quota::new().tpm(6_000)).unwrap();
    settle_down().await;
    assert_eq!(*granted.lock(), [(0, 0), (1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn unreachable_deadline_is_refused_immediately() {
    let limiter = paused(Quota::new().tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let begin = limiter.now();
    let late = limiter.acquire("k", &tokens(30)).max_wait(Duration::from_secs(29)).await;
    let Err(AcquireError::DeadlineExceeded { refused, .. }) = &late else { panic!("{late:?}") };
    assert_eq!((refused.code, &*refused.key), (Code::TpmExceeded, "k"));
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(30)));
    let text = "the request cannot be granted by its deadline: \
                k: tokens per minute exceeded (needs 30, limit 60); retry in 30.000 s";
    assert_eq!(late.unwrap_err().to_string(), text);
    assert_eq!(limiter.now(), begin);
    assert!(limiter.acquire("k", &tokens(30)).max_wait(Duration::from_secs(31)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn deadline_behind_other_waiters_ends_the_wait() {
    let limiter = paused(Quota::new().concurrency(1));
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let begin = limiter.now();
    let _first = start(&limiter, &[0]);
    settle_down().await;
    let late = limiter.acquire("k", &Cost::new()).max_wait(Duration::from_secs(3)).await;
    assert!(matches!(late, Err(AcquireError::DeadlineExceeded { .. })));
    assert_eq!((limiter.now() - begin).as_secs(), 3);
    assert_eq!(limiter.stats("k").waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn zero_max_wait_does_not_join_the_queue() {
    let limiter = paused(Quota::new().tpm(60));
    let _waiting = start(&limiter, &[30, 60]);
    let mut now_or_never = limiter.acquire("k", &tokens(1)).max_wait(Duration::ZERO);
    let Some(Err(error)) = now_or_never.arrive() else { panic!("the request was queued") };
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::OthersWaiting));
}

#[tokio::test(start_paused = true)]
async fn full_queue_rejects_acquire() {
    let limiter = builder()
        .quota("k", Quota::new().concurrency(1))
        .max_waiting(1)
        .clock(paceline::limiter::TokioClock::new())
        .build()
        .unwrap();
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let _first = start(&limiter, &[0]);
    let full = limiter.acquire("k", &Cost::new()).await.unwrap_err();
    assert_eq!(full, AcquireError::QueueFull { key: "k".into(), waiting: 1 });
}

#[tokio::test(start_paused = true)]
async fn close_rejects_waiters_and_newcomers() {
    let limiter = paused(Quota::new().concurrency(1));
    let _held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let waiting = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    limiter.close().await;
    assert_eq!(waiting.await.unwrap().unwrap_err(), AcquireError::Closed);
    assert_eq!(limiter.acquire("k", &Cost::new()).await.unwrap_err(), AcquireError::Closed);
}

#[tokio::test(start_paused = true)]
async fn provider_refusal_pauses_all_requests_of_the_key() {
    let limiter = paused(Quota::new().rpm(600));
    let granted = start(&limiter, &[0]);
    settle_down().await;
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::CoolingDown);
    let later = start(&limiter, &[0, 0]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(*granted.lock(), [(0, 0)]);
    assert_eq!(*later.lock(), [(0, 7), (1, 7)]);
}

#[tokio::test(start_paused = true)]
async fn wait_emits_event_with_duration() {
    let limiter = paused(Quota::new().rpm(60).tpm(60));
    limiter.acquire("k", &tokens(60)).await.unwrap();
    let mut events = limiter.subscribe();
    limiter.acquire("k", &tokens(6)).await.unwrap();
    assert!(matches!(events.recv().await.unwrap(), Event::Granted { .. }));
    let Event::Waited { duration, .. } = events.recv().await.unwrap() else {
        panic!("no `Waited` event")
    };
    assert_eq!(duration.as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_keep_order_despite_cancellations() {
    let limiter = paused(Quota::new().rpm(60_000));
    limiter
        .quotas()
        .set("k", &Quota::new().tpm(60_000).with_algorithm(paceline::quota::Algorithm::TokenBucket))
        .unwrap();
    limiter.acquire("k", &tokens(60_000)).await.unwrap();
    let begin = limiter.now();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..10_000_u64 {
        let mut acquire = limiter.acquire("k", &tokens(10));
        assert!(acquire.arrive().is_none());
        let (limiter, order) = (limiter.clone(), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let permit = acquire.await.unwrap();
            order.lock().push((number, limiter.now() - begin));
            permit.settle(&tokens(10));
        }));
    }
    settle_down().await;
    tasks.iter().skip(5).step_by(10).for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(Duration::from_secs(200)).await;
    let order = order.lock();
    assert_eq!(order.len(), 9_000);
    assert!(order.is_sorted());
    // 10 tokens per request, 1,000 tokens per second; tokio's timer ticks in milliseconds.
    for (index, (_, at)) in order.iter().enumerate() {
        let exact = Duration::from_millis((index as u64 + 1) * 10);
        assert!((exact..=exact + 2 * MS).contains(at), "{index}: {at:?} for {exact:?}");
    }
}

#[tokio::test]
async fn closed_limiter_refuses_every_call_with_closed() {
    let limiter = builder().quota("k", Quota::new().rpm(9)).build().unwrap();
    let handle = limiter.key("k").unwrap();
    limiter.close().await;
    let refused = [
        limiter.try_acquire("k", &Cost::new()).unwrap_err(),
        handle.try_acquire(&Cost::new()).unwrap_err(),
    ];
    for refused in refused {
        assert_eq!((refused.code, refused.wait), (Code::Closed, Wait::Never));
        assert_eq!(refused.to_string(), "k: the limiter is closed");
    }
    assert_eq!(limiter.decide("k", &Cost::new()).code, Code::Closed);
}

/// A waker that reads the limiter when it is dropped, as a task that owns a permit does.
struct ReadingWaker(Limiter);

impl std::task::Wake for ReadingWaker {
    fn wake(self: Arc<Self>) {}
}

impl Drop for ReadingWaker {
    fn drop(&mut self) {
        self.0.stats("k");
    }
}

#[test]
fn waker_is_never_dropped_under_the_lock() {
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (limiter, _) = super::manual(Quota::new().concurrency(1));
        let _held = limiter.try_acquire("k", &Cost::new()).unwrap();
        let mut acquire = Box::pin(limiter.acquire("k", &Cost::new()));
        let mut gate = limiter.key("k").unwrap().gate();
        for _ in 0..2 {
            let waker = Arc::new(ReadingWaker(limiter.clone())).into();
            let mut cx = std::task::Context::from_waker(&waker);
            assert!(acquire.as_mut().poll(&mut cx).is_pending());
            assert!(gate.poll_open(&Cost::new(), None, &mut cx).is_pending());
        }
        drop(acquire);
        drop(gate);
        done.send(()).unwrap();
    });
    assert!(finished.recv_timeout(Duration::from_secs(10)).is_ok(), "deadlock");
}

#[tokio::test]
async fn ten_thousand_waiters_are_granted_at_exact_nanosecond() {
    let (limiter, clock) = manual(Quota::new().rpm(60_000));
    limiter.try_acquire("k", &Cost::new().requests(60_000)).unwrap();
    let (begin, granted) = (limiter.now(), Arc::new(Mutex::new(Vec::new())));
    for number in 0..10_000 {
        let mut acquire = limiter.acquire("k", &Cost::new());
        assert!(acquire.arrive().is_none());
        let granted = Arc::clone(&granted);
        tokio::spawn(async move {
            drop(acquire.await.unwrap());
            granted.lock().push(number);
        });
    }
    poll_each(10_000).await;
    for number in 1..=10_000_u32 {
        clock.advance_to(begin + number * MS - Duration::from_nanos(1));
        settle_down().await;
        assert_eq!(granted.lock().len(), number as usize - 1);
        clock.advance_to(begin + number * MS);
        settle_down().await;
        if granted.lock().len() < number as usize {
            // All that wait are polled now.
            poll_each(10_000).await;
        }
        assert_eq!(granted.lock().len(), number as usize);
    }
    assert!(granted.lock().is_sorted());
}

/// Polls so many tasks: about sixty run between two yields.
async fn poll_each(tasks: usize) {
    for _ in 0..tasks.div_ceil(500) {
        settle_down().await;
    }
}

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn request_with_turn_after_deadline_is_refused_on_arrival() {
    let limiter = paused(Quota::new().rpm(6));
    limiter.acquire("k", &Cost::new().requests(6)).await.unwrap();
    let begin = limiter.now();
    let wait = |limiter: &Limiter| {
        tokio::spawn(limiter.acquire("k", &Cost::new()).max_wait(Duration::from_millis(14_500)))
    };
    let first = wait(&limiter);
    settle_down().await;
    for (waiting, seconds) in [(1, 20), (2, 30)] {
        let error = wait(&limiter).await.unwrap().unwrap_err();
        let AcquireError::DeadlineExceeded { refused, .. } = error else { panic!("{error}") };
        assert_eq!((limiter.now(), refused.code), (begin, Code::OthersWaiting));
        let Wait::At(time) = refused.wait else { panic!("{refused:?}") };
        assert_eq!(time - begin, Duration::from_secs(seconds));
        if waiting == 1 {
            tokio::spawn(limiter.acquire("k", &Cost::new()));
            settle_down().await;
        }
    }
    first.await.unwrap().unwrap();
    assert_eq!(limiter.now() - begin, Duration::from_secs(10));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(100_000, 2_000))
    })]

    /// A request that is refused on arrival would not have been granted by its deadline.
    #[test]
    fn late_requests_refused_on_arrival_would_be_late(
        costs in proptest::collection::vec((1..4_u64, 0..40_u64), 2..12),
        (rpm, tpm) in (1..30_u64, 40..200_u64),
        algorithm in 0..3_usize,
        deadline in 0..200_u64,
    ) {
        let algorithms = [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
        let quota = Quota::new().rpm(rpm.max(4)).tpm(tpm).with_algorithm(algorithms[algorithm]);
        let cost = |&(requests, tokens): &(u64, u64)| Cost::new().requests(requests).tokens(tokens);
        let last_granted = |deadline: Option<Duration>| {
            let clock = ManualClock::new();
            let limiter = builder().quota("k", quota.clone()).clock(clock.clone()).build().unwrap();
            let begin = limiter.now();
            let (last, earlier) = costs.split_last().unwrap();
            let mut waiting: Vec<_> = earlier.iter().map(|c| limiter.acquire("k", &cost(c))).collect();
            let mut acquire = limiter.acquire("k", &cost(last));
            if let Some(deadline) = deadline {
                acquire = acquire.max_wait(deadline);
            }
            let mut granted = None;
            waiting.retain_mut(|acquire| acquire.arrive().is_none());
            let arrived = acquire.arrive();
            if deadline.is_some() || arrived.is_some() {
                return (arrived.map(|result| result.is_ok()), limiter.now() - begin);
            }
            let mut waiting: Vec<_> = waiting.into_iter().map(Box::pin).collect();
            let mut acquire = Box::pin(acquire);
            for _ in 0..3_000 {
                let mut cx = Context::from_waker(Waker::noop());
                waiting.retain_mut(|waiting| waiting.as_mut().poll(&mut cx).is_pending());
                if acquire.as_mut().poll(&mut cx).is_ready() {
                    granted = Some(true);
                    break;
                }
                clock.advance(Duration::from_millis(500));
            }
            (granted, limiter.now() - begin)
        };
        let (granted, after) = last_granted(None);
        prop_assert_eq!(granted, Some(true));
        let deadline = Duration::from_secs(deadline);
        let (arrived, _) = last_granted(Some(deadline));
        if arrived == Some(false) {
            prop_assert!(after > deadline, "refused, though granted after {after:?}");
        }
    }
}
