//! A server that fails all requests of a key, which stops it but for one test at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use paceline::Timestamp;
use paceline::engine::Wait;
use paceline::limiter::{Code, Limiter, ManualClock, Outage, RateLimited, Reduction};
use paceline::provider::{Refusal, RefusalKind};
use paceline::quota::{Cost, Quota};
use tower::{Layer, Service};

use super::kinds::{Answer, LIMITED, OK, OVERLOADED, Provider};
use super::{echo, is_ready, tokens};

const FAILED: Answer = (500, "", "Internal error");

#[tokio::test(start_paused = true)]
async fn circuit_opens_when_nothing_is_accepted_and_probes_alone() {
    for reduction in [Reduction::ADAPTIVE, Reduction::new(), Reduction::OFF] {
        let provider = Provider::with(reduction, 0, |name, _| match name {
            "good" => OK,
            _ => OVERLOADED,
        });
        assert_eq!(provider.send_all(&["bad"; 5]).await, [Ok(503); 5]);
        // Of those that follow, one goes after a second, and each next one after twice the time.
        let begin = provider.limiter.now();
        assert_eq!(provider.send_all(&["bad"; 3]).await, [Ok(503); 3]);
        assert_eq!(provider.seconds(begin), 7, "after 1, 3 and 7 s");
        tokio::time::sleep(Duration::from_secs(8)).await;
        let begin = provider.limiter.now();
        assert_eq!(provider.send_all(&["good"; 3]).await, [Ok(200); 3]);
        assert_eq!(provider.seconds(begin), 0, "the first one opens the key");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_between_accepted_requests_open_no_circuit() {
    let provider = Provider::with(Reduction::ADAPTIVE, 0, |name, _| match name {
        "good" => OK,
        _ => OVERLOADED,
    });
    let begin = provider.limiter.now();
    for _ in 0..20 {
        provider.send_all(&["bad"; 4]).await;
        assert_eq!(provider.send("good").await, 200);
    }
    assert!(provider.seconds(begin) <= 2, "{}", provider.seconds(begin));
}

/// Most of the requests were sent before the first failure.
#[tokio::test(start_paused = true)]
async fn successes_of_requests_in_flight_open_no_circuit() {
    for reduction in [Reduction::ADAPTIVE, Reduction::OFF] {
        for answer in [FAILED, OVERLOADED] {
            let provider = Provider::with(reduction, 0, move |name, _| match name {
                "good" => OK,
                _ => answer,
            });
            let names: Vec<_> =
                (0..105).map(|at| if at % 21 == 0 { "bad" } else { "good" }).collect();
            provider.send_all(&names).await;
            assert_eq!(outage(&provider), None, "{reduction:?} {answer:?}");
        }
    }
}

fn outage(provider: &Provider) -> Option<Outage> {
    provider.limiter.stats("gpt-4o").outage
}

#[tokio::test(start_paused = true)]
async fn server_errors_of_different_requests_open_circuit() {
    let provider = Provider::with(Reduction::ADAPTIVE, 0, |name, _| match name {
        "good" => OK,
        _ => FAILED,
    });
    provider.send_all(&["bad"; 4]).await;
    assert_eq!(outage(&provider), None);
    let begin = provider.limiter.now();
    assert_eq!(provider.send_all(&["bad"; 4]).await, [Ok(500); 4]);
    let down = outage(&provider).expect("the server is down");
    assert_eq!((down.status, (down.since - begin).as_secs()), (Some(500), 0));
    assert_eq!(provider.send("bad").await, 500);
    assert_eq!(provider.seconds(begin), 1, "the first test");
    assert_eq!(provider.send("good").await, 200);
    assert_eq!((provider.seconds(begin), outage(&provider)), (3, None));
}

/// Of all but a server that can't be reached, the request itself may be the cause.
#[tokio::test(start_paused = true)]
async fn single_failing_request_opens_no_circuit() {
    for answer in [FAILED, OVERLOADED] {
        let provider = Provider::with(Reduction::ADAPTIVE, 8, move |_, _| answer);
        provider.send("bad").await;
        assert_eq!((provider.tries("bad"), outage(&provider)), (9, None), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_failed_before_others_succeeded_open_no_circuit() {
    for answer in [FAILED, OVERLOADED] {
        let provider = Provider::with(Reduction::ADAPTIVE, 3, move |name, _| match name {
            "good" => OK,
            _ => answer,
        });
        let bad = ["a", "b", "c", "good", "d", "e", "f", "good"];
        provider.send_all(&bad).await;
        assert_eq!(outage(&provider), None, "{answer:?}");
        assert!("abcdef".chars().all(|name| provider.tries(&name.to_string()) == 4));
    }
}

/// The refusal for a limit says nothing about whether the request can be served.
#[tokio::test(start_paused = true)]
async fn request_limited_before_it_failed_counts_as_failure() {
    let provider = Provider::with(Reduction::OFF, 1, |_, number| match number {
        1 => (429, "1", LIMITED),
        _ => FAILED,
    });
    assert_eq!(provider.send_all(&["a", "b", "c", "d", "e"]).await, [Ok(500); 5]);
    assert!(outage(&provider).is_some());
}

#[tokio::test(start_paused = true)]
async fn few_requests_of_overloaded_server_open_circuit() {
    let provider = Provider::with(Reduction::ADAPTIVE, 8, |_, _| OVERLOADED);
    provider.send_all(&["a", "b"]).await;
    assert_eq!(outage(&provider).and_then(|outage| outage.status), Some(503));
}

#[tokio::test(start_paused = true)]
async fn refusal_of_a_test_for_its_rate_closes_circuit() {
    let provider = Provider::with(Reduction::ADAPTIVE, 0, |name, _| match name {
        "limited" => (429, "", LIMITED),
        "good" => OK,
        _ => FAILED,
    });
    provider.send_all(&["bad"; 5]).await;
    assert!(outage(&provider).is_some());
    assert_eq!(provider.send("limited").await, 429);
    assert_eq!(outage(&provider), None);
    provider.send("bad").await;
    assert_eq!(outage(&provider), None, "the failures are counted from the start");
}

fn manual(clock: &ManualClock) -> Limiter {
    let quota = Quota::new().rpm(6_000);
    Limiter::builder().clock(clock.clone()).quota("k", quota).build().unwrap()
}

fn fail(limiter: &Limiter, sent_at: Timestamp, times: u32) {
    for _ in 0..times {
        let failure = RateLimited::default().overloaded().sent_at(sent_at);
        limiter.feedback().rate_limited("k", &failure);
    }
}

#[test]
fn tests_of_the_server_wait_for_up_to_30_seconds() {
    let clock = ManualClock::new();
    let limiter = manual(&clock);
    fail(&limiter, limiter.now(), 5);
    let mut delays = Vec::new();
    for _ in 0..7 {
        let Some(Wait::At(next)) = limiter.decide("k", &Cost::new()).wait else { panic!("a time") };
        delays.push((next - limiter.now()).as_secs());
        clock.advance(next - limiter.now());
        let test = limiter.try_acquire("k", &Cost::new()).expect("a test");
        assert!(limiter.try_acquire("k", &Cost::new()).is_err(), "one at a time");
        fail(&limiter, test.granted_at(), 1);
        test.settle(&Cost::new());
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 30, 30]);
}

/// Clients may name any key.
#[test]
fn outage_of_a_key_that_is_not_used_any_more_is_dropped() {
    let clock = ManualClock::new();
    let limiter = manual(&clock);
    fail(&limiter, limiter.now(), 5);
    clock.advance(Duration::from_secs(500));
    limiter.state().prune();
    assert!(limiter.stats("k").outage.is_some());
    clock.advance(Duration::from_secs(500));
    limiter.state().prune();
    assert_eq!(limiter.stats("k").outage, None);
}

#[test]
fn failures_of_requests_sent_in_an_outage_start_no_other() {
    let clock = ManualClock::new();
    let limiter = manual(&clock);
    let early = limiter.now();
    fail(&limiter, early, 5);
    assert!(limiter.stats("k").outage.is_some());
    clock.advance(Duration::from_secs(1));
    limiter.try_acquire("k", &Cost::new()).expect("a test").settle(&Cost::new());
    assert_eq!(limiter.stats("k").outage, None);
    fail(&limiter, early, 10);
    assert_eq!(limiter.stats("k").outage, None);
    fail(&limiter, limiter.now(), 5);
    assert!(limiter.stats("k").outage.is_some());
}

#[test]
fn test_that_was_never_sent_is_repeated() {
    let clock = ManualClock::new();
    let (limiter, cost) = (manual(&clock), Cost::new());
    fail(&limiter, limiter.now(), 5);
    clock.advance(Duration::from_secs(1));
    for _ in 0..3 {
        let test = limiter.try_acquire("k", &cost).expect("a test");
        assert!(limiter.try_acquire("k", &cost).is_err(), "one at a time");
        test.release();
        assert!(limiter.stats("k").outage.is_some(), "it shows nothing");
    }
    limiter.try_acquire("k", &cost).expect("a test").settle(&cost);
    assert_eq!(limiter.stats("k").outage, None);
}

#[test]
fn test_of_an_account_that_was_never_sent_is_repeated() {
    let clock = ManualClock::new();
    let (limiter, cost) = (manual(&clock), Cost::new());
    refuse_account(&limiter, 3);
    let refused = limiter.try_acquire("k", &cost).unwrap_err();
    assert_eq!(refused.code, Code::AccountRefused);
    clock.advance(Duration::from_secs(10));
    for _ in 0..3 {
        let test = limiter.try_acquire("k", &cost).expect("a test");
        assert!(limiter.try_acquire("k", &cost).is_err(), "one at a time");
        test.release();
        assert!(limiter.stats("k").account_refused.is_some());
    }
}

/// The client isn't ready when the turn of the test comes.
#[tokio::test]
async fn test_dropped_before_its_call_is_repeated() {
    let clock = ManualClock::new();
    let limiter = manual(&clock);
    let is_busy = Arc::new(AtomicBool::new(false));
    let busy = Arc::clone(&is_busy);
    let inner = echo().with_readiness(move || match busy.load(Ordering::Relaxed) {
        true => Poll::Pending,
        false => Poll::Ready(Ok(())),
    });
    let calls = Arc::clone(&inner.calls);
    let mut service = tokens(&limiter).layer(inner);
    fail(&limiter, limiter.now(), 5);
    assert!(is_ready(&mut service).await);
    let mut call = Box::pin(service.call(0));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    is_busy.store(true, Ordering::Relaxed);
    clock.advance(Duration::from_secs(1));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    assert!(limiter.try_acquire("k", &Cost::new()).is_err(), "it has the turn");
    drop(call);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert!(limiter.stats("k").outage.is_some());
    assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
}

/// Sends requests that are refused for their account.
fn refuse_account(limiter: &Limiter, times: u32) {
    for _ in 0..times {
        let permit = limiter.try_acquire("k", &Cost::new()).expect("a test");
        let refused = RateLimited::of(Refusal::new(RefusalKind::Account));
        limiter.feedback().rate_limited("k", &refused.sent_at(permit.granted_at()));
        permit.settle(&Cost::new());
    }
}

/// A name, and a function that brings a key into a state.
type State<'a> = (&'a str, &'a dyn Fn(&Limiter, &ManualClock));

#[tokio::test]
async fn reset_ends_each_state_that_a_refusal_leaves() {
    let minute = Duration::from_secs(60);
    let report = |limiter: &Limiter, refused: RateLimited| {
        limiter.feedback().rate_limited("k", &refused.sent_at(limiter.now()));
    };
    let states: [State<'_>; 7] = [
        ("rate", &|limiter, _| report(limiter, RateLimited::new(Some(minute)))),
        ("window", &|limiter, _| report(limiter, RateLimited::new(None).until_reset())),
        ("outage", &|limiter, _| fail(limiter, limiter.now(), 5)),
        ("test in flight", &|limiter, clock| {
            fail(limiter, limiter.now(), 5);
            clock.advance(Duration::from_secs(1));
            std::mem::forget(limiter.try_acquire("k", &Cost::new()).expect("a test"));
        }),
        ("suspected account", &|limiter, _| {
            refuse_account(limiter, 1);
            std::mem::forget(limiter.try_acquire("k", &Cost::new()).expect("a test"));
        }),
        ("refused account", &|limiter, _| refuse_account(limiter, 3)),
        ("mixed account", &|limiter, clock| {
            refuse_account(limiter, 3);
            clock.advance(Duration::from_secs(10));
            std::mem::forget(limiter.try_acquire("k", &Cost::new()).expect("a test"));
        }),
    ];
    for (name, refuse) in states {
        let clock = ManualClock::new();
        let (limiter, cost) = (manual(&clock), Cost::new());
        refuse(&limiter, &clock);
        assert!(limiter.try_acquire("k", &cost).is_err(), "{name}");
        let waiting = limiter.acquire("k", &cost).into_future();
        let mut waiting = std::pin::pin!(waiting);
        let refuses = limiter.stats("k").account_refused.is_some();
        assert_eq!(futures_util::poll!(waiting.as_mut()).is_pending(), !refuses, "{name}");
        limiter.reset("k");
        if !refuses {
            assert!(futures_util::poll!(waiting.as_mut()).is_ready(), "{name}");
        }
        let stats = limiter.stats("k");
        assert_eq!((stats.outage, stats.account_refused, stats.cooling_until), (None, None, None));
        assert!((0..3).all(|_| limiter.try_acquire("k", &cost).is_ok()), "{name}");
        // The failures are counted from the start.
        fail(&limiter, limiter.now(), 4);
        assert!(limiter.try_acquire("k", &cost).is_ok(), "{name}");
        limiter.reset("k");
        refuse_account(&limiter, 2);
        assert!(limiter.try_acquire("k", &cost).is_ok(), "{name}");
    }
}

/// A client that hangs up shows nothing about the server.
#[tokio::test(start_paused = true)]
async fn test_that_is_dropped_leaves_circuit_open() {
    let provider = Provider::with(Reduction::ADAPTIVE, 0, |_, _| OVERLOADED);
    provider.send_all(&["bad"; 5]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begin = provider.limiter.now();
    let test = tokio::time::timeout(Duration::from_millis(1), provider.send("dropped")).await;
    assert!(test.is_err() && provider.tries("dropped") == 1);
    assert!(outage(&provider).is_some());
    // Another one tests at once, and the next ones wait.
    assert_eq!(provider.send_all(&["bad"; 2]).await, [Ok(503); 2]);
    assert_eq!(provider.seconds(begin), 2);
}
