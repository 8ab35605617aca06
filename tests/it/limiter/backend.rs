use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::engine::Wait;
use tollgate::limiter::{
    Backend, Code, Ending, Event, Limiter, ManualClock, RateLimited, Reservation, Reserving,
    TokioClock, Unmet,
};
use tollgate::quota::{Cost, Quota};

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

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), Unmet> {
        let mut granted = self.granted.lock();
        if *granted == 0 {
            *granted += 1;
            return Ok(());
        }
        *granted = 0;
        Err(Unmet::Full(Wait::At(ManualClock::START + 1_000_000_000)))
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
    assert!(limiter.now() - begin >= 1_000_000_000);
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

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), Unmet> {
        *self.asked.lock() += 1;
        let taken = std::mem::replace(&mut *self.taken.lock(), true);
        if taken { Err(Unmet::Full(Wait::Unknown)) } else { Ok(()) }
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
    limiter.on_rate_limited("k", &RateLimited::new(Some(Duration::from_secs(7))));
    assert_eq!(limiter.try_acquire("k", &Cost::new()).unwrap_err().code, Code::CoolingDown);
    limiter.acquire("k", &Cost::new()).await.unwrap();
    assert!(limiter.now() - begin >= 7_000_000_000);
    assert_eq!(*backend.asked.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_by_a_backend_is_announced_whichever_call_it_came_by() {
    let (limiter, _) = one_at_a_time();
    let mut events = limiter.subscribe();
    let _permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    assert!(matches!(events.try_recv(), Ok(Event::Granted { .. })));
}
