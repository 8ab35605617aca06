//! A server that fails all requests of a key whose buckets a backend keeps.

use std::sync::Arc;
use std::time::Duration;

use paceline::limiter::{
    Backend, Code, Ending, Limiter, RateLimited, Reservation, ReserveError, Reserving, TokioClock,
};
use paceline::provider::OPENAI;
use paceline::quota::{Cost, Quota};
use parking_lot::Mutex;

use super::kinds::{Answer, OK, Provider};
use super::{S, cooling};

const FAILED: Answer = (500, "", "Internal error");

/// A store that admits every request, here or after a while, and counts what is reserved.
#[derive(Debug, Default)]
struct Roomy {
    is_here: bool,
    /// The requests that may ask beside the first one.
    ahead: usize,
    is_full: Mutex<bool>,
    reserved: Mutex<i64>,
}

impl Backend for Roomy {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        let answer = self.try_reserve(reservation);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            answer
        })
    }

    fn max_ahead(&self, _: &Reservation) -> usize {
        self.ahead
    }

    fn reserve_here(&self, reservation: &Arc<Reservation>) -> Option<Result<(), ReserveError>> {
        self.is_here.then(|| self.try_reserve(reservation))
    }

    fn try_reserve(&self, _: &Arc<Reservation>) -> Result<(), ReserveError> {
        if *self.is_full.lock() {
            return Err(ReserveError::Full(paceline::engine::Wait::Unknown));
        }
        *self.reserved.lock() += 1;
        Ok(())
    }

    fn end(&self, _: &Arc<Reservation>, ending: Ending) {
        if ending == Ending::Released {
            *self.reserved.lock() -= 1;
        }
    }

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

fn limiter(backend: &Arc<Roomy>) -> Limiter {
    let builder = Limiter::builder().clock(TokioClock::new()).provider(OPENAI);
    let builder = builder.quota("gpt-4o", Quota::new().rpm(6_000));
    builder.backend(Arc::clone(backend) as _).build().unwrap()
}

fn backends() -> [Arc<Roomy>; 3] {
    let with = |is_here, ahead| Arc::new(Roomy { is_here, ahead, ..Roomy::default() });
    [with(false, 0), with(false, 8), with(true, 0)]
}

#[tokio::test(start_paused = true)]
async fn outage_with_backend_is_tested_by_one_request() {
    for backend in backends() {
        let provider = Provider::of(limiter(&backend), 0, |name, _| match name {
            "good" => OK,
            _ => FAILED,
        });
        provider.send_all(&["bad"; 5]).await;
        assert!(provider.limiter.stats("gpt-4o").outage.is_some());
        let begin = provider.limiter.now();
        assert_eq!(provider.send_all(&["bad"; 4]).await, [Ok(500); 4]);
        assert_eq!(provider.seconds(begin), 15, "after 1, 3, 7 and 15 s");
        assert_eq!(provider.send_all(&["good"; 4]).await, [Ok(200); 4]);
        assert_eq!(provider.seconds(begin), 31, "the first one opens the key");
        assert_eq!(*backend.reserved.lock(), 13, "what wasn't sent is returned");
    }
}

#[tokio::test(start_paused = true)]
async fn try_acquire_with_backend_tests_alone() {
    for backend in backends() {
        let (limiter, cost) = (limiter(&backend), Cost::new());
        for _ in 0..5 {
            limiter.feedback().rate_limited("gpt-4o", &RateLimited::default().overloaded());
        }
        tokio::time::sleep(S).await;
        *backend.is_full.lock() = true;
        assert_eq!(limiter.try_acquire("gpt-4o", &cost).unwrap_err().code, Code::LimitExceeded);
        *backend.is_full.lock() = false;
        let test = limiter.try_acquire("gpt-4o", &cost).expect("the refused one wasn't sent");
        assert_eq!(limiter.try_acquire("gpt-4o", &cost).unwrap_err().code, Code::CoolingDown);
        test.release();
        let test = limiter.try_acquire("gpt-4o", &cost).expect("a test that wasn't sent");
        assert!(limiter.try_acquire("gpt-4o", &cost).is_err());
        test.settle(&cost);
        assert_eq!(limiter.stats("gpt-4o").outage, None);
        assert!(limiter.try_acquire("gpt-4o", &cost).is_ok());
    }
}

/// The answer of the store comes after that of the provider.
#[tokio::test(start_paused = true)]
async fn request_granted_by_backend_in_a_pause_waits_for_its_end() {
    let [backend, ..] = backends();
    let limiter = limiter(&backend);
    let begin = limiter.now();
    let waiting = tokio::spawn(limiter.acquire("gpt-4o", &Cost::new()).into_future());
    tokio::time::sleep(Duration::from_millis(2)).await;
    limiter.feedback().rate_limited("gpt-4o", &RateLimited::new(Some(3 * S)));
    assert!(cooling(&limiter, "gpt-4o") > 2 * S);
    waiting.await.unwrap().expect("a permit").settle(&Cost::new());
    assert!(limiter.now() - begin >= 3 * S);
    assert_eq!(*backend.reserved.lock(), 1);
}
