use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use paceline::engine::{Level, Rule, Shortfall, Wait};
use paceline::limiter::{
    AcquireError, Backend, Code, Ending, Event, Limiter, ManualClock, RateLimited, Reduction,
    Reservation, ReserveError, Reserving, TokioClock, UnknownKey,
};
use paceline::quota::{Cost, Dimension, Quota, Usage};
use paceline_limiter::seam;
use parking_lot::Mutex;

use super::{builder, settle_down};

/// A remote store that grants one request per second, on the second.
#[derive(Debug, Default)]
struct OnePerSecondBackend {
    granted: Mutex<u64>,
    endings: Mutex<Vec<Ending>>,
}

impl Backend for OnePerSecondBackend {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let free = self.try_reserve(reservation);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            free
        })
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        let mut granted = self.granted.lock();
        if *granted == 0 {
            *granted += 1;
            return Ok(());
        }
        *granted = 0;
        Err(ReserveError::Full(Wait::At(ManualClock::START + Duration::from_nanos(1_000_000_000))))
    }

    fn end(&self, _: &Arc<Reservation>, ending: Ending) {
        self.endings.lock().push(ending);
    }

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

fn limiter(backend: &Arc<OnePerSecondBackend>) -> Limiter {
    let builder = builder().quota("k", Quota::new().rpm(1)).clock(TokioClock::new());
    builder.backend(Arc::clone(backend) as Arc<dyn Backend>).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn backend_is_asked_first_and_receives_ending() {
    let backend = Arc::new(OnePerSecondBackend::default());
    let limiter = limiter(&backend);
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new().tokens(7));
    limiter.acquire("k", &Cost::new()).await.unwrap().release();
    assert!(limiter.now() - begin >= Duration::from_secs(1));
    let endings = backend.endings.lock();
    assert_eq!(*endings, [Ending::Settled(Cost::new().tokens(7)), Ending::Released]);
}

#[tokio::test(start_paused = true)]
async fn acquire_dropped_while_backend_answers_is_released() {
    let backend = Arc::new(OnePerSecondBackend::default());
    let limiter = limiter(&backend);
    let asking = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    asking.abort();
    settle_down().await;
    assert_eq!(*backend.endings.lock(), [Ending::Released]);
    assert_eq!(limiter.stats("k").waiting, 0);
}

/// A remote store that admits one request at a time and answers after 10 ms.
#[derive(Debug, Default)]
struct OneAtATime {
    taken: Mutex<bool>,
    calls: Mutex<usize>,
}

impl Backend for OneAtATime {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let answer = self.try_reserve(reservation);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer
        })
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        *self.calls.lock() += 1;
        let taken = std::mem::replace(&mut *self.taken.lock(), true);
        if taken { Err(ReserveError::Full(Wait::Unknown)) } else { Ok(()) }
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {
        *self.taken.lock() = false;
    }

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

fn one_at_a_time() -> (Limiter, Arc<OneAtATime>) {
    let backend = Arc::new(OneAtATime::default());
    let builder = builder().quota("k", Quota::new().concurrency(1)).clock(TokioClock::new());
    (builder.backend(Arc::clone(&backend) as _).build().unwrap(), backend)
}

#[tokio::test(start_paused = true)]
async fn permit_released_while_backend_answers_wakes_waiter() {
    let (limiter, _) = one_at_a_time();
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let asking = tokio::spawn(limiter.acquire("k", &Cost::new()));
    tokio::time::sleep(Duration::from_millis(5)).await;
    drop(held);
    let granted = tokio::time::timeout(Duration::from_secs(5), asking).await;
    granted.expect("the waiter hangs").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn provider_refusal_with_backend_pauses_all_requests() {
    let (limiter, backend) = one_at_a_time();
    let begin = limiter.now();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::CoolingDown);
    limiter.acquire("k", &Cost::new()).await.unwrap();
    assert!(limiter.now() - begin >= Duration::from_secs(7));
    assert_eq!(*backend.calls.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn backend_grant_by_try_acquire_emits_event() {
    let (limiter, _) = one_at_a_time();
    let mut events = limiter.subscribe();
    let _permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    assert!(matches!(events.try_recv(), Ok(Event::Granted { .. })));
}

/// A remote store that answers as configured, grants a number of requests locally and records its
/// calls.
#[derive(Debug, Default)]
struct Scripted {
    local: Mutex<u64>,
    answer: Mutex<Option<ReserveError>>,
    calls: Mutex<Vec<String>>,
}

impl Backend for Scripted {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        Box::pin(std::future::ready(self.try_reserve(reservation)))
    }

    fn reserve_here(&self, _: &Arc<Reservation>) -> Option<Result<(), ReserveError>> {
        let mut local = self.local.lock();
        *local = local.checked_sub(1)?;
        Some(Ok(()))
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        self.calls.lock().push("reserve".into());
        self.answer.lock().map_or(Ok(()), Err)
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {}

    fn charge(&self, reservation: &Arc<Reservation>) {
        let tokens = reservation.cost.amount(&Dimension::Tokens);
        self.calls.lock().push(format!("charged {} {tokens}", reservation.scopes[0].key));
    }

    fn reset(&self, key: &str) {
        self.calls.lock().push(format!("reset {key}"));
    }

    fn levels(&self, _: &str, rules: &[Rule]) -> Option<Vec<Level>> {
        let level = |_| Level { used: 3, held: 2, available: 5, fresh_at: ManualClock::START };
        Some(rules.iter().map(level).collect())
    }
}

fn scripted(local: u64, answer: Option<ReserveError>) -> (Limiter, Arc<Scripted>) {
    let backend = Scripted { local: local.into(), answer: answer.into(), ..Scripted::default() };
    let backend = Arc::new(backend);
    let builder = builder().quota("k", Quota::new().rpm(10).tpm(10)).clock(ManualClock::new());
    (builder.backend(Arc::clone(&backend) as _).build().unwrap(), backend)
}

#[tokio::test]
async fn local_grant_of_backend_skips_remote_call() {
    let (limiter, backend) = scripted(3, None);
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let mut arriving = limiter.acquire("k", &Cost::new());
    assert!(arriving.arrive().is_some_and(|granted| granted.is_ok()));
    assert!(backend.calls.lock().is_empty());
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    assert_eq!(*backend.calls.lock(), ["reserve"]);
}

#[test]
fn backend_shortfall_names_limit_and_wait() {
    let at = Wait::At(ManualClock::START + Duration::from_nanos(7));
    let shortfall = Shortfall { rule: 1, wait: at };
    let (limiter, backend) =
        scripted(0, Some(ReserveError::Short { scope: 0, shortfall, earliest: None }));
    let refused = limiter.try_acquire("k", &Cost::new().tokens(4)).unwrap_err();
    assert_eq!((refused.code, refused.wait), (Code::TpmExceeded, at));
    assert_eq!(
        (refused.dimension, refused.need.map(|need| (need.amount, need.limit))),
        (Some(Dimension::Tokens), Some((4, 10)))
    );
    let until = ManualClock::START + Duration::from_nanos(9);
    *backend.answer.lock() = Some(ReserveError::Away { until });
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!((refused.code, refused.wait), (Code::Unavailable, Wait::At(until)));
}

#[test]
fn stats_and_decisions_use_backend_levels() {
    let (limiter, _) = scripted(0, None);
    let stats = limiter.stats("k").limits[0].clone();
    assert_eq!((stats.used, stats.held, stats.available, stats.limit), (3, 2, 5, 10));
    assert!(limiter.decide("k", &Cost::new().tokens(5)).is_allowed());
    let decision = limiter.decide("k", &Cost::new().tokens(6));
    assert_eq!((decision.code, decision.wait), (Code::TpmExceeded, Some(Wait::Unknown)));
    assert_eq!(limiter.decide("k", &Cost::new().tokens(11)).wait, Some(Wait::Never));
}

#[test]
fn record_and_reset_reach_backend() {
    let (limiter, backend) = scripted(0, None);
    limiter.record("k", &Usage { input: 4, output: 3, ..Usage::default() });
    limiter.reset("k");
    limiter.reset_all();
    assert_eq!(*backend.calls.lock(), ["charged k 7", "reset k", "reset k"]);
}

#[test]
fn stored_usage_with_backend_is_not_counted_twice() {
    let used = |limiter: &Limiter| limiter.stats("k").limits[0].used;
    let earlier = builder().quota("k", Quota::new().rpm(9)).clock(ManualClock::new());
    let earlier = earlier.build().unwrap();
    seam::track(&earlier);
    for _ in 0..5 {
        drop(earlier.try_acquire("k", &Cost::new()).unwrap());
    }
    earlier.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(30))));
    let limiter = limiter(&Arc::default());
    limiter.state().absorb(&earlier.state().snapshot());
    assert_eq!((used(&earlier), used(&limiter)), (5, 0));
    seam::apply_changes(&limiter, &seam::collect_changes(&earlier));
    assert_eq!(used(&limiter), 0);
    let cooling = limiter.stats("k").cooling_until;
    assert!(cooling.is_some() && cooling == earlier.stats("k").cooling_until, "the pause is kept");
}

#[test]
fn reset_of_key_unknown_locally_reaches_backend() {
    let backend = Arc::new(Scripted::default());
    let builder = builder().unknown_key(UnknownKey::Refuse).backend(Arc::clone(&backend) as _);
    builder.build().unwrap().reset("remote");
    assert_eq!(*backend.calls.lock(), ["reset remote"]);
}

#[test]
fn backend_answer_about_removed_limit_names_no_dimension() {
    let shortfall = Shortfall { rule: 7, wait: Wait::Unknown };
    let (limiter, _) =
        scripted(0, Some(ReserveError::Short { scope: 0, shortfall, earliest: None }));
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!((refused.code, refused.dimension), (Code::LimitExceeded, None));
}

#[test]
fn deadline_before_the_earliest_time_is_refused_unless_limits_recover() {
    let at = |seconds| ManualClock::START + Duration::from_secs(seconds);
    let shortfall = Shortfall { rule: 1, wait: Wait::At(at(60)) };
    let fails_at_once = |earliest, deadline, is_reduced| {
        let answer = ReserveError::Short { scope: 0, shortfall, earliest };
        let backend = Arc::new(Scripted { answer: Some(answer).into(), ..Scripted::default() });
        let (clock, pace) = (ManualClock::new(), Reduction::new().interval(Duration::from_secs(5)));
        let builder = builder().quota("k", Quota::new().rpm(10).tpm(10)).reduction(pace);
        let limiter = builder.clock(clock.clone()).backend(backend).build().unwrap();
        if is_reduced {
            let pause = Some(Duration::from_secs(1));
            limiter.feedback().rate_limited("k", &RateLimited::new(pause));
            clock.advance(Duration::from_secs(2));
        }
        let acquire = limiter.acquire("k", &Cost::new().tokens(1)).deadline(at(deadline));
        match acquire.into_future().now_or_never() {
            None => false,
            Some(Err(AcquireError::DeadlineExceeded { .. })) => true,
            Some(answer) => panic!("{answer:?}"),
        }
    };
    assert!(fails_at_once(Some(at(30)), 29, false));
    assert!(!fails_at_once(Some(at(30)), 30, false), "what is held may come back");
    assert!(!fails_at_once(None, 29, false), "unknown");
    assert!(!fails_at_once(Some(at(30)), 29, true), "a reduced limit grows again");
}

/// A remote store with a fixed number of free requests that answers after 10 ms.
#[derive(Debug)]
struct Counted(Mutex<u64>);

impl Backend for Counted {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let taken = self.try_reserve(reservation);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            taken
        })
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        let mut free = self.0.lock();
        *free = free.checked_sub(1).ok_or(ReserveError::Full(Wait::Unknown))?;
        Ok(())
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {}

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

#[tokio::test(start_paused = true)]
async fn zero_max_wait_with_backend_still_gets_free_requests() {
    let builder = builder().quota("k", Quota::new().rpm(9)).clock(TokioClock::new());
    let limiter = builder.backend(Arc::new(Counted(Mutex::new(5)))).build().unwrap();
    let ask = || tokio::spawn(limiter.acquire("k", &Cost::new()).max_wait(Duration::ZERO));
    let asking: Vec<_> = (0..8).map(|_| ask()).collect();
    let mut granted = 0;
    for request in asking {
        granted += u64::from(request.await.unwrap().is_ok());
    }
    assert_eq!(granted, 5);
    assert_eq!(limiter.stats("k").waiting, 0);
}

/// A remote store that never answers.
#[derive(Debug, Default)]
struct Silent(Mutex<Vec<String>>);

impl Backend for Silent {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        self.0.lock().push(reservation.scopes[0].key.to_string());
        Box::pin(std::future::pending())
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        Err(ReserveError::Full(Wait::Unknown))
    }

    fn end(&self, reservation: &Arc<Reservation>, _: Ending) {
        self.0.lock().push(format!("end {}", reservation.scopes[0].key));
    }

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

#[tokio::test(start_paused = true)]
async fn backend_call_for_moved_key_is_repeated_and_ends_at_close() {
    let backend = Arc::new(Silent::default());
    let quota = Quota::new().rpm(9);
    let builder = builder().quota("*", quota.clone()).clock(TokioClock::new());
    let limiter = builder.backend(Arc::clone(&backend) as Arc<dyn Backend>).build().unwrap();
    let asking = tokio::spawn(limiter.acquire("m-1", &Cost::new()));
    settle_down().await;
    limiter.quotas().set("m-*", &quota.shared()).unwrap();
    settle_down().await;
    assert_eq!(*backend.0.lock(), ["m-1", "end m-1", "m-*"]);
    assert_eq!(limiter.stats("m-2").waiting, 1);
    limiter.close().await;
    assert_eq!(asking.await.unwrap().unwrap_err(), AcquireError::Closed);
    assert_eq!(*backend.0.lock(), ["m-1", "end m-1", "m-*", "end m-*"]);
}

#[tokio::test(start_paused = true)]
async fn quota_that_rejects_refuses_at_the_answer_of_backend() {
    let (limiter, _) = one_at_a_time();
    limiter.quotas().set("k", &Quota::new().concurrency(1).reject()).unwrap();
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let begin = limiter.now();
    let error = limiter.acquire("k", &Cost::new()).await.unwrap_err();
    assert_eq!(error.refused().map(|refused| refused.code), Some(Code::LimitExceeded));
    assert_eq!(limiter.now() - begin, Duration::from_millis(10));
    assert_eq!(limiter.stats("k").waiting, 0);
    drop(held);
    limiter.acquire("k", &Cost::new()).await.unwrap();
}
