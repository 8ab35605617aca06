//! Requests that ask a backend at the same time.

use std::sync::Arc;
use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{
    Acquire, AcquireError, Backend, Clock, Code, Ending, Limiter, Permit, Priority, Reservation,
    ReserveError, Reserving, TokioClock,
};
use paceline::quota::{Dimension, Quota};
use paceline_testing::full::full_or;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::random::Random;
use super::{builder, settle_down, tokens};

/// A remote store of tokens: it decides in the order of the calls, and answers after a round trip.
#[derive(Debug)]
struct Distant {
    max_ahead: usize,
    clock: TokioClock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    free: u64,
    /// The granted reservations that have not ended.
    held: Vec<Arc<Reservation>>,
    /// The amounts asked for, in order; `true` if the store keeps a place after a refusal.
    calls: Vec<(u64, bool)>,
    asking: usize,
    most_asking: usize,
    /// The round trips of the next calls, if they differ from [`ROUND_TRIP`].
    round_trips: Vec<Duration>,
}

const ROUND_TRIP: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_millis(50);
const RETRY: Duration = Duration::from_millis(25);

fn amount(reservation: &Reservation) -> u64 {
    reservation.cost.amount(&Dimension::Tokens)
}

impl Distant {
    fn decide(
        &self,
        reservation: &Arc<Reservation>,
        keeps_place: bool,
    ) -> Result<(), ReserveError> {
        let mut state = self.state.lock();
        state.calls.push((amount(reservation), keeps_place));
        let left = state.free.checked_sub(amount(reservation));
        let refusal = ReserveError::Full(Wait::At(self.clock.now() + RETRY));
        state.free = left.ok_or(refusal)?;
        state.held.push(Arc::clone(reservation));
        Ok(())
    }

    fn ask(&self, reservation: &Arc<Reservation>, keeps_place: bool) -> Reserving {
        let answer = self.decide(reservation, keeps_place);
        let state = Arc::clone(&self.state);
        let round_trip = {
            let mut state = state.lock();
            state.asking += 1;
            state.most_asking = state.most_asking.max(state.asking);
            if state.round_trips.is_empty() { ROUND_TRIP } else { state.round_trips.remove(0) }
        };
        Box::pin(async move {
            tokio::time::sleep(round_trip).await;
            state.lock().asking -= 1;
            answer
        })
    }
}

impl Backend for Distant {
    fn reserve(&self, reservation: &Arc<Reservation>) -> Reserving {
        self.ask(reservation, true)
    }

    fn reserve_once(&self, reservation: &Arc<Reservation>) -> Reserving {
        self.ask(reservation, false)
    }

    fn max_ahead(&self, _: &Reservation) -> usize {
        self.max_ahead
    }

    fn try_reserve(&self, reservation: &Arc<Reservation>) -> Result<(), ReserveError> {
        self.decide(reservation, false)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn end(&self, reservation: &Arc<Reservation>, ending: Ending) {
        let mut state = self.state.lock();
        let Some(at) = state.held.iter().position(|held| Arc::ptr_eq(held, reservation)) else {
            return;
        };
        state.held.remove(at);
        if ending == Ending::Released {
            state.free += amount(reservation);
        }
    }

    fn charge(&self, _: &Arc<Reservation>) {}

    fn reset(&self, _: &str) {}
}

fn distant(free: u64, max_ahead: usize) -> (Limiter, Arc<Mutex<State>>) {
    let state = Arc::new(Mutex::new(State { free, ..State::default() }));
    let clock = TokioClock::new();
    let backend = Distant { max_ahead, clock, state: Arc::clone(&state) };
    let builder = builder().quota("k", Quota::new().tpm(1_000_000)).clock(clock);
    (builder.backend(Arc::new(backend)).build().unwrap(), state)
}

type Asking = JoinHandle<Result<Permit, AcquireError>>;

/// Starts a request, which joins the queue, or asks, before this returns.
async fn start(acquire: Acquire) -> Asking {
    let asking = tokio::spawn(acquire);
    settle_down().await;
    asking
}

async fn start_all(limiter: &Limiter, costs: &[u64]) -> Vec<Asking> {
    let mut all = Vec::new();
    for &cost in costs {
        all.push(start(limiter.acquire("k", &tokens(cost))).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn requests_ask_together_and_share_one_round_trip() {
    let (limiter, state) = distant(1_000, 23);
    let begin = limiter.now();
    for request in start_all(&limiter, &[1; 24]).await {
        drop(request.await.unwrap().unwrap());
    }
    assert_eq!(limiter.now() - begin, ROUND_TRIP);
    let state = state.lock();
    assert_eq!(state.most_asking, 24);
    let keeping = state.calls.iter().filter(|(_, keeps_place)| *keeps_place).count();
    assert_eq!(keeping, 1, "only the first one is the head of the queue");
}

#[tokio::test(start_paused = true)]
async fn max_ahead_bounds_calls_of_all_keys() {
    let (limiter, state) = distant(1_000, 3);
    limiter.quotas().set("other", &Quota::new().tpm(1_000_000)).unwrap();
    let mut all = start_all(&limiter, &[1; 12]).await;
    for _ in 0..12 {
        all.push(start(limiter.acquire("other", &tokens(1))).await);
    }
    for request in all {
        request.await.unwrap().unwrap().release();
    }
    assert_eq!(state.lock().most_asking, 2 + 3);
}

#[tokio::test(start_paused = true)]
async fn refused_requests_ask_one_at_a_time() {
    let (limiter, state) = distant(0, 100);
    let all = start_all(&limiter, &[5; 20]).await;
    tokio::time::sleep(10 * RETRY).await;
    {
        let state = state.lock();
        assert!(state.calls.len() <= 20 + 11, "{} calls", state.calls.len());
        let retries = &state.calls[20..];
        assert!(retries.iter().all(|(_, keeps_place)| *keeps_place), "{retries:?}");
        assert_eq!(limiter.stats("k").waiting, 20);
    }
    state.lock().free = 1_000;
    for request in all {
        request.await.unwrap().unwrap().release();
    }
    assert_eq!(limiter.stats("k").waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn smaller_request_does_not_pass_refused_one() {
    let (limiter, state) = distant(5, 10);
    let granted = Arc::new(Mutex::new(Vec::new()));
    for cost in [10, 1, 2] {
        let (acquire, granted) = (limiter.acquire("k", &tokens(cost)), Arc::clone(&granted));
        drop(tokio::spawn(async move {
            granted.lock().push(cost);
            let permit = acquire.await.unwrap();
            granted.lock().push(100 + cost);
            permit.settle(&tokens(cost));
        }));
        settle_down().await;
    }
    tokio::time::sleep(5 * RETRY).await;
    assert_eq!(*granted.lock(), [10, 1, 2], "all have asked, and none is granted");
    assert!(state.lock().held.is_empty(), "the grants of the smaller ones are returned");
    state.lock().free += 8;
    tokio::time::sleep(5 * RETRY).await;
    assert_eq!(granted.lock()[3..], [110, 101, 102]);
}

#[tokio::test(start_paused = true)]
async fn grant_waits_for_answer_to_earlier_request() {
    for (first, expected) in [(3 * ROUND_TRIP, 3 * ROUND_TRIP), (10 * PATIENCE, PATIENCE)] {
        let (limiter, state) = distant(10, 10);
        state.lock().round_trips = vec![first];
        let begin = limiter.now();
        let [early, late] = start_all(&limiter, &[1, 1]).await.try_into().unwrap();
        drop(late.await.unwrap().unwrap());
        assert_eq!(limiter.now() - begin, expected, "at the latest when the answer is due");
        early.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn request_dropped_with_unused_grant_releases_it() {
    let (limiter, state) = distant(10, 10);
    state.lock().round_trips = vec![3 * ROUND_TRIP];
    let mut all = start_all(&limiter, &[1, 2, 3]).await;
    tokio::time::sleep(2 * ROUND_TRIP).await;
    all.remove(1).abort();
    settle_down().await;
    assert_eq!(state.lock().free, 10 - 4);
    for request in all {
        request.await.unwrap().unwrap().release();
    }
    assert_eq!((state.lock().free, limiter.stats("k").waiting), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn cancelled_first_request_lets_later_ones_use_grants() {
    let (limiter, state) = distant(10, 10);
    state.lock().round_trips = vec![3 * ROUND_TRIP];
    let begin = limiter.now();
    let [first, second] = start_all(&limiter, &[1, 2]).await.try_into().unwrap();
    tokio::time::sleep(ROUND_TRIP * 3 / 2).await;
    first.abort();
    drop(second.await.unwrap().unwrap());
    assert_eq!(limiter.now() - begin, ROUND_TRIP * 3 / 2);
}

#[tokio::test(start_paused = true)]
async fn higher_priority_asks_and_is_granted_before_refused_one() {
    let (limiter, state) = distant(5, 10);
    let waiting = start(limiter.acquire("k", &tokens(10)).priority(Priority::BATCH)).await;
    let urgent = start(limiter.acquire("k", &tokens(5)).priority(Priority::INTERACTIVE)).await;
    let later = start(limiter.acquire("k", &tokens(1)).priority(Priority::BATCH)).await;
    tokio::time::sleep(2 * ROUND_TRIP).await;
    drop(urgent.await.unwrap().unwrap());
    assert!(!waiting.is_finished() && !later.is_finished());
    state.lock().free = 11;
    drop(waiting.await.unwrap().unwrap());
    drop(later.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn request_that_awaits_answer_holds_up_no_try_acquire() {
    let (limiter, state) = distant(10, 10);
    let asking = start(limiter.acquire("k", &tokens(1))).await;
    assert!(limiter.decide("k", &tokens(1)).is_allowed());
    limiter.try_acquire("k", &tokens(1)).unwrap().release();
    drop(asking.await.unwrap().unwrap());
    let waiting = start(limiter.acquire("k", &tokens(100))).await;
    tokio::time::sleep(2 * ROUND_TRIP).await;
    let refused = limiter.try_acquire("k", &tokens(1)).unwrap_err();
    assert_eq!(refused.code, Code::OthersWaiting, "the first one waits for quota");
    assert_eq!(limiter.decide("k", &tokens(1)).code, Code::OthersWaiting);
    state.lock().free = 100;
    drop(waiting.await.unwrap().unwrap());
    state.lock().free = 1;
    limiter.try_acquire("k", &tokens(1)).unwrap().release();
}

#[tokio::test(start_paused = true)]
async fn requests_that_do_not_wait_ask_beside_the_queue() {
    let (limiter, state) = distant(12, 100);
    let begin = limiter.now();
    let ask = |_| tokio::spawn(limiter.acquire("k", &tokens(1)).max_wait(Duration::ZERO));
    let mut codes = Vec::new();
    for request in (0..24).map(ask).collect::<Vec<_>>() {
        codes.push(match request.await.unwrap() {
            Ok(_) => Code::Ok,
            Err(AcquireError::DeadlineExceeded { refused, .. }) => refused.code,
            Err(error) => panic!("{error}"),
        });
    }
    assert_eq!(limiter.now() - begin, ROUND_TRIP);
    assert_eq!(codes.iter().filter(|code| **code == Code::Ok).count(), 12);
    assert!(!codes.contains(&Code::OthersWaiting), "{codes:?}");
    assert!(state.lock().calls.iter().all(|(_, keeps_place)| !keeps_place));
}

/// P5 and P3 with random costs, arrivals, refills, cancellations and round trips.
#[tokio::test(start_paused = true)]
async fn grants_of_asking_requests_keep_order_of_arrival() {
    for seed in 0..full_or(2_000, 150) {
        let mut random = Random(seed);
        let (limiter, state) = distant(random.below(30), random.below(12) as usize);
        let granted = Arc::new(Mutex::new(Vec::new()));
        let mut requests = Vec::new();
        for number in 0..40 {
            let (acquire, granted) =
                (limiter.acquire("k", &tokens(random.below(9))), Arc::clone(&granted));
            requests.push(tokio::spawn(async move {
                let permit = acquire.await.unwrap();
                granted.lock().push(number);
                permit.release();
            }));
            settle_down().await;
            if random.below(4) == 0 {
                requests[random.below(number + 1) as usize].abort();
            }
            state.lock().free += random.below(3);
            // Up to twice as long as the others, but never overdue.
            let round_trip = ROUND_TRIP + Duration::from_millis(random.below(10));
            state.lock().round_trips.push(round_trip);
            tokio::time::sleep(Duration::from_millis(random.below(8))).await;
        }
        state.lock().free += 9;
        for request in requests {
            let _ = tokio::time::timeout(Duration::from_secs(60), request).await.expect("hangs");
        }
        assert!(granted.lock().is_sorted(), "seed {seed}: {:?}", granted.lock());
        assert!(state.lock().held.is_empty(), "seed {seed}");
        assert_eq!(limiter.stats("k").waiting, 0, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_request_that_asks_gives_its_grant_back() {
    let (limiter, state) = distant(100, 1);
    let mut forgotten = Box::pin(limiter.acquire("k", &tokens(60)));
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    assert_eq!(state.lock().free, 40);
    let other = start(limiter.acquire("k", &tokens(70))).await;
    let other = tokio::time::timeout(Duration::from_secs(2), other).await;
    let permit = other.expect("the forgotten one is passed").unwrap().unwrap();
    assert_eq!(state.lock().free, 30);
    permit.release();
    // It asks again when it is polled.
    let permit = forgotten.await.unwrap();
    assert_eq!(state.lock().free, 40);
    permit.release();
    let state = state.lock();
    assert_eq!((state.free, state.held.len()), (100, 0));
}

/// Where the program is slow, requests that don't wait would ask again and again, and be refused while grants are held
/// that nobody uses.
#[tokio::test(start_paused = true)]
async fn request_that_does_not_wait_keeps_its_grant_if_it_is_polled_late() {
    let (limiter, state) = distant(100, 2);
    let ask = |cost| Box::pin(limiter.acquire("k", &tokens(cost)).max_wait(Duration::ZERO));
    let mut late = ask(60);
    assert!(futures_util::poll!(&mut late).is_pending());
    let others = async |seconds| {
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            ask(40).await.unwrap().release();
        }
    };
    others(8).await;
    late.await.unwrap().release();
    assert_eq!(state.lock().calls.len(), 9);
    // But not for ever.
    let mut forgotten = ask(60);
    assert!(futures_util::poll!(&mut forgotten).is_pending());
    others(12).await;
    ask(100).await.unwrap().release();
}

#[tokio::test(start_paused = true)]
async fn forgotten_requests_that_ask_return_their_slots() {
    let (limiter, state) = distant(1_000, 1);
    let mut forgotten = [10, 20].map(|cost| Box::pin(limiter.acquire("k", &tokens(cost))));
    for forgotten in &mut forgotten {
        assert!(futures_util::poll!(forgotten).is_pending());
    }
    assert_eq!(state.lock().calls.len(), 2);
    let next = start(limiter.acquire("k", &tokens(30))).await;
    let next = tokio::time::timeout(Duration::from_secs(2), next).await;
    next.expect("both are passed").unwrap().unwrap().release();
    // One of the next two needs a slot to ask at once.
    let both = start_all(&limiter, &[40, 50]).await;
    assert_eq!(state.lock().calls.len(), 5);
    for asking in both {
        asking.await.unwrap().unwrap().release();
    }
    drop(forgotten);
    let state = state.lock();
    assert_eq!((state.free, state.held.len()), (1_000, 0));
}
