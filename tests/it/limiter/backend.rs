use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::engine::{Level, Rule, Shortfall, Wait};
use tollgate::limiter::{
    AcquireError, Backend, Code, Ending, Event, Limiter, ManualClock, RateLimited, Reservation,
    ReserveError, Reserving, TokioClock, UnknownKey,
};
use tollgate::quota::{Cost, Dimension, Quota, Usage};

use super::{builder, settle_down};

/// A store elsewhere that grants one request every second, on the second.
#[derive(Debug, Default)]
struct Elsewhere {
    granted: Mutex<u64>,
    endings: Mutex<Vec<Ending>>,
}

impl Backend for Elsewhere {
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

fn limiter(backend: &Arc<Elsewhere>) -> Limiter {
    let builder = builder().quota("k", Quota::new().rpm(1)).clock(TokioClock::new());
    builder.backend(Arc::clone(backend) as Arc<dyn Backend>).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_backend_is_asked_by_the_first_and_told_how_it_ended() {
    let backend = Arc::new(Elsewhere::default());
    let limiter = limiter(&backend);
    let begin = limiter.now();
    limiter.acquire("k", &Cost::new()).await.unwrap().settle(&Cost::new().tokens(7));
    limiter.acquire("k", &Cost::new()).await.unwrap().release();
    assert!(limiter.now() - begin >= Duration::from_secs(1));
    let endings = backend.endings.lock();
    assert_eq!(*endings, [Ending::Settled(Cost::new().tokens(7)), Ending::Released]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_given_up_is_undone() {
    let backend = Arc::new(Elsewhere::default());
    let limiter = limiter(&backend);
    let asking = tokio::spawn(limiter.acquire("k", &Cost::new()));
    settle_down().await;
    asking.abort();
    settle_down().await;
    assert_eq!(*backend.endings.lock(), [Ending::Released]);
    assert_eq!(limiter.stats("k").waiting, 0);
}

/// A store elsewhere that lets one request in at a time, and answers 10 ms after it has looked.
#[derive(Debug, Default)]
struct OneAtATime {
    taken: Mutex<bool>,
    asked: Mutex<usize>,
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
        *self.asked.lock() += 1;
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
async fn a_permit_that_ends_while_the_backend_is_asked_is_not_missed() {
    let (limiter, _) = one_at_a_time();
    let held = limiter.acquire("k", &Cost::new()).await.unwrap();
    let asking = tokio::spawn(limiter.acquire("k", &Cost::new()));
    tokio::time::sleep(Duration::from_millis(5)).await;
    drop(held);
    let granted = tokio::time::timeout(Duration::from_secs(5), asking).await;
    granted.expect("it waits for ever").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_the_provider_holds_everybody_with_a_backend_too() {
    let (limiter, backend) = one_at_a_time();
    let begin = limiter.now();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::CoolingDown);
    limiter.acquire("k", &Cost::new()).await.unwrap();
    assert!(limiter.now() - begin >= Duration::from_secs(7));
    assert_eq!(*backend.asked.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_by_a_backend_is_announced_whichever_call_it_came_by() {
    let (limiter, _) = one_at_a_time();
    let mut events = limiter.subscribe();
    let _permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    assert!(matches!(events.try_recv(), Ok(Event::Granted { .. })));
}

/// A store elsewhere that answers as it was told, has something at hand, and notes what it is told.
#[derive(Debug, Default)]
struct Scripted {
    at_hand: Mutex<u64>,
    answer: Mutex<Option<ReserveError>>,
    told: Mutex<Vec<String>>,
}

impl Backend for Scripted {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        Box::pin(std::future::ready(self.try_reserve(reservation)))
    }

    fn reserve_here(&self, _: &Arc<Reservation>) -> Option<Result<(), ReserveError>> {
        let mut at_hand = self.at_hand.lock();
        *at_hand = at_hand.checked_sub(1)?;
        Some(Ok(()))
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        self.told.lock().push("asked".into());
        self.answer.lock().map_or(Ok(()), Err)
    }

    fn end(&self, _: &Arc<Reservation>, _: Ending) {}

    fn charge(&self, reservation: &Arc<Reservation>) {
        let tokens = reservation.cost.amount(&Dimension::Tokens);
        self.told.lock().push(format!("charged {} {tokens}", reservation.scopes[0].key));
    }

    fn reset(&self, key: &str) {
        self.told.lock().push(format!("reset {key}"));
    }

    fn levels(&self, _: &str, rules: &[Rule]) -> Option<Vec<Level>> {
        let level = |_| Level { used: 3, held: 2, available: 5, fresh_at: ManualClock::START };
        Some(rules.iter().map(level).collect())
    }
}

fn scripted(at_hand: u64, answer: Option<ReserveError>) -> (Limiter, Arc<Scripted>) {
    let backend =
        Scripted { at_hand: at_hand.into(), answer: answer.into(), ..Scripted::default() };
    let backend = Arc::new(backend);
    let builder = builder().quota("k", Quota::new().rpm(10).tpm(10)).clock(ManualClock::new());
    (builder.backend(Arc::clone(&backend) as _).build().unwrap(), backend)
}

#[tokio::test]
async fn what_a_backend_has_at_hand_is_granted_without_asking_elsewhere() {
    let (limiter, backend) = scripted(3, None);
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    let mut arriving = limiter.acquire("k", &Cost::new());
    assert!(arriving.arrive().is_some_and(|granted| granted.is_ok()));
    assert!(backend.told.lock().is_empty());
    drop(limiter.acquire("k", &Cost::new()).await.unwrap());
    assert_eq!(*backend.told.lock(), ["asked"]);
}

#[test]
fn what_is_short_elsewhere_is_named() {
    let at = Wait::At(ManualClock::START + Duration::from_nanos(7));
    let shortfall = Shortfall { rule: 1, wait: at };
    let (limiter, backend) = scripted(0, Some(ReserveError::Short { scope: 0, shortfall }));
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
fn figures_and_decisions_are_those_of_the_backend() {
    let (limiter, _) = scripted(0, None);
    let stats = limiter.stats("k").limits[0].clone();
    assert_eq!((stats.used, stats.held, stats.available, stats.limit), (3, 2, 5, 10));
    assert!(limiter.decide("k", &Cost::new().tokens(5)).is_allowed());
    let decision = limiter.decide("k", &Cost::new().tokens(6));
    assert_eq!((decision.code, decision.wait), (Code::TpmExceeded, Some(Wait::Unknown)));
    assert_eq!(limiter.decide("k", &Cost::new().tokens(11)).wait, Some(Wait::Never));
}

#[test]
fn usage_after_the_fact_and_resets_go_to_the_backend() {
    let (limiter, backend) = scripted(0, None);
    limiter.record("k", &Usage { input: 4, output: 3, ..Usage::default() });
    limiter.reset("k");
    limiter.reset_all();
    assert_eq!(*backend.told.lock(), ["charged k 7", "reset k", "reset k"]);
}

#[test]
fn what_a_store_kept_is_not_counted_beside_what_a_backend_knows() {
    let used = |limiter: &Limiter| limiter.stats("k").limits[0].used;
    let earlier = builder().quota("k", Quota::new().rpm(9)).clock(ManualClock::new());
    let earlier = earlier.build().unwrap();
    earlier.state().track();
    for _ in 0..5 {
        drop(earlier.try_acquire("k", &Cost::new()).unwrap());
    }
    earlier.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(30))));
    let limiter = limiter(&Arc::default());
    limiter.state().absorb(&earlier.state().snapshot());
    assert_eq!((used(&earlier), used(&limiter)), (5, 0));
    limiter.state().apply_changes(&earlier.state().collect_changes());
    assert_eq!(used(&limiter), 0);
    let cooling = limiter.stats("k").cooling_until;
    assert!(cooling.is_some() && cooling == earlier.stats("k").cooling_until, "it goes on");
}

#[test]
fn a_key_that_is_known_to_others_alone_is_reset_by_its_name() {
    let backend = Arc::new(Scripted::default());
    let builder = builder().unknown_key(UnknownKey::Refuse).backend(Arc::clone(&backend) as _);
    builder.build().unwrap().reset("theirs");
    assert_eq!(*backend.told.lock(), ["reset theirs"]);
}

#[test]
fn an_answer_about_limits_that_are_gone_names_none() {
    let shortfall = Shortfall { rule: 7, wait: Wait::Unknown };
    let (limiter, _) = scripted(0, Some(ReserveError::Short { scope: 0, shortfall }));
    let refused = limiter.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!((refused.code, refused.dimension), (Code::LimitExceeded, None));
}

/// A store elsewhere that has room for so many, and answers after 10 ms.
#[derive(Debug)]
struct Roomy(Mutex<u64>);

impl Backend for Roomy {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let taken = self.try_reserve(reservation);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            taken
        })
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        let mut room = self.0.lock();
        *room = room.checked_sub(1).ok_or(ReserveError::Full(Wait::Unknown))?;
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
async fn who_does_not_wait_for_room_still_waits_behind_those_who_only_ask() {
    let builder = builder().quota("k", Quota::new().rpm(9)).clock(TokioClock::new());
    let limiter = builder.backend(Arc::new(Roomy(Mutex::new(5)))).build().unwrap();
    let ask = || tokio::spawn(limiter.acquire("k", &Cost::new()).max_wait(Duration::ZERO));
    let asking: Vec<_> = (0..8).map(|_| ask()).collect();
    let mut granted = 0;
    for asked in asking {
        granted += u64::from(asked.await.unwrap().is_ok());
    }
    assert_eq!(granted, 5);
    assert_eq!(limiter.stats("k").waiting, 0);
}

/// A store elsewhere that never answers.
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
async fn question_about_a_key_that_moved_is_asked_again_and_ends_at_close() {
    let backend = Arc::new(Silent::default());
    let quota = Quota::new().rpm(9);
    let builder = builder().quota("*", quota.clone()).clock(TokioClock::new());
    let limiter = builder.backend(Arc::clone(&backend) as Arc<dyn Backend>).build().unwrap();
    let asking = tokio::spawn(limiter.acquire("m-1", &Cost::new()));
    settle_down().await;
    limiter.quotas().set("m-*", &quota.shared());
    settle_down().await;
    assert_eq!(*backend.0.lock(), ["m-1", "end m-1", "m-*"]);
    assert_eq!(limiter.stats("m-2").waiting, 1);
    limiter.close().await;
    assert_eq!(asking.await.unwrap().unwrap_err(), AcquireError::Closed);
    assert_eq!(*backend.0.lock(), ["m-1", "end m-1", "m-*", "end m-*"]);
}
