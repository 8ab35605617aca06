use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::engine::Wait;
use tollgate::limiter::{
    Backend, Ending, Limiter, ManualClock, Reservation, Reserving, TokioClock,
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

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), Wait> {
        let mut granted = self.granted.lock();
        if *granted == 0 {
            *granted += 1;
            return Ok(());
        }
        *granted = 0;
        Err(Wait::At(ManualClock::START + 1_000_000_000))
    }

    fn end(&self, _: &Arc<Reservation>, ending: Ending) {
        self.endings.lock().push(ending);
    }
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
