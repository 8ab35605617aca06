//! Requests that wait for an amount that another process returns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::cluster::{OnFailure, Shared};
use paceline::limiter::{AcquireError, Limiter, Permit};
use paceline::quota::{Algorithm, Cost, Quota};

use super::failure::send_command;
use super::shared::{closed, limiter};
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// Long for a message, and short beside the windows in these tests.
const SOON: Duration = Duration::from_secs(10);

/// Two processes' limiters with a quota, and a server.
struct Pair {
    redis: Redis,
    holder: Limiter,
    waiter: Limiter,
    waiting: Arc<Shared>,
}

impl Pair {
    fn with(quota: &Quota) -> Self {
        let mut redis = Redis::start();
        let connect = || closed(&redis.url()).connect().unwrap();
        let (holding, waiting) = (connect(), connect());
        let [holder, waiter] = [&holding, &waiting].map(|shared| limiter(shared, quota.clone()));
        let address = redis.server().address;
        until("both processes listen", || count_listeners(address) == 2);
        Self { redis, holder, waiter, waiting }
    }

    /// Starts to wait for this cost, until the store has refused the request.
    fn wait(&mut self, cost: &Cost) -> tokio::task::JoinHandle<Result<Permit, AcquireError>> {
        let (limiter, cost) = (self.waiter.clone(), cost.clone());
        let waiting = tokio::spawn(async move { limiter.acquire("k", &cost).await });
        let address = self.redis.server().address;
        let key = "HEXISTS paceline:{account}:k w";
        until("a request waits", || send_command(address, key).starts_with(":1"));
        waiting
    }

    fn calls(&self) -> u64 {
        self.waiting.status().decided
    }
}

fn count_listeners(address: SocketAddr) -> usize {
    let channels = send_command(address, "PUBSUB CHANNELS paceline:wake:*");
    channels.matches("paceline:wake:").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn amount_that_another_process_returns_is_used_at_once() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow] {
        let mut pair = Pair::with(&Quota::new().rpd(1).with_algorithm(algorithm));
        let held = pair.holder.try_acquire("k", &Cost::new()).unwrap();
        let waiting = pair.wait(&Cost::new());
        held.release();
        let granted = tokio::time::timeout(SOON, waiting).await;
        assert!(granted.is_ok_and(|granted| granted.unwrap().is_ok()), "{algorithm:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_slot_in_flight_goes_to_the_request_that_waits() {
    let mut pair = Pair::with(&Quota::new().concurrency(1));
    let mut held = pair.holder.try_acquire("k", &Cost::new()).unwrap();
    for _ in 0..20 {
        let waiting = pair.wait(&Cost::new());
        drop(held);
        held = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
        std::mem::swap(&mut pair.holder, &mut pair.waiter);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_request_does_not_poll() {
    let mut pair = Pair::with(&Quota::new().concurrency(1));
    let held = pair.holder.try_acquire("k", &Cost::new()).unwrap();
    let waiting = pair.wait(&Cost::new());
    let (before, begin) = (pair.calls(), Instant::now());
    until("the ticket is renewed", || pair.calls() >= before + 3);
    // 46 calls a second before; a busy machine makes fewer.
    let most = begin.elapsed().as_secs_f64() * 5.0 + 3.0;
    let calls = pair.calls() - before;
    assert!((calls as f64) < most, "{calls} calls in {:?}", begin.elapsed());
    drop(held);
    assert!(waiting.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_before_the_window_ends_is_refused_at_once() {
    let pair = Pair::with(&Quota::new().rpd(1).with_algorithm(Algorithm::SlidingWindow));
    let _used = pair.holder.try_acquire("k", &Cost::new()).unwrap();
    let acquire = pair.waiter.acquire("k", &Cost::new()).max_wait(Duration::from_secs(3_600));
    let refused =
        tokio::time::timeout(SOON, acquire).await.expect("it can't be granted in an hour");
    assert!(matches!(refused, Err(AcquireError::DeadlineExceeded { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn request_asks_by_itself_where_messages_are_forbidden() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    let rule = "ACL SETUSER limited on >secret ~* +@all resetchannels";
    assert!(send_command(address, rule).starts_with("+OK"));
    let url = format!("redis://limited:secret@{address}");
    let connect = || Shared::builder(&url, "account").on_failure(OnFailure::Closed).connect();
    let (one, other) = (connect().unwrap(), connect().unwrap());
    let [holder, waiter] =
        [&one, &other].map(|shared| limiter(shared, Quota::new().concurrency(1)));
    let held = holder.acquire("k", &Cost::new()).max_wait(SOON).await.unwrap();
    let waiting = tokio::spawn(async move { waiter.acquire("k", &Cost::new()).await });
    until("the waiting request is refused", || other.status().decided > 0);
    drop(held);
    let granted = tokio::time::timeout(SOON, waiting).await;
    assert!(granted.is_ok_and(|granted| granted.unwrap().is_ok()));
}
