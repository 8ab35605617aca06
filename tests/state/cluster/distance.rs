//! Shared limits on a server at a distance: what is done within one round trip.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::Shared;
use paceline::limiter::{AcquireError, Limiter, Permit};
use paceline::quota::{Cost, Quota};
use redis::Connection;

use super::held_proxy::HeldProxy;
use super::shared::{closed, limiter};
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// A limiter on a distant server, and a direct connection to that server.
struct Distant {
    limiter: Limiter,
    shared: Arc<Shared>,
    proxy: HeldProxy,
    direct: RefCell<Connection>,
    _redis: Redis,
}

type Asking = tokio::task::JoinHandle<Result<Permit, AcquireError>>;

const CLIENTS: u64 = 24;

impl Distant {
    fn start(quota: Quota) -> Self {
        let mut redis = Redis::start();
        let proxy = HeldProxy::start(redis.server().address);
        let url = format!("redis://{}", proxy.address);
        // A server that is far away is not an outage.
        let shared = closed(&url).timeout(Duration::from_secs(30)).connect().unwrap();
        let limiter = limiter(&shared, quota);
        let direct = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
        until("the server is found", || shared.status().connected);
        // Loads the script.
        limiter.try_acquire("another", &Cost::new()).unwrap().release();
        until("the end is acknowledged", || shared.status().unacknowledged == 0);
        Self { limiter, shared, proxy, direct: RefCell::new(direct), _redis: redis }
    }

    /// Returns the number of calls of the script that the server has executed.
    fn calls(&self) -> u64 {
        let mut direct = self.direct.borrow_mut();
        let text: String = redis::cmd("INFO").arg("commandstats").query(&mut *direct).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().unwrap())
    }

    async fn until_calls(&self, calls: u64) {
        for _ in 0..10_000 {
            if self.calls() >= calls {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{} calls, not {calls}", self.calls());
    }

    fn ask(&self, clients: u64) -> Vec<Asking> {
        let ask = |_| tokio::spawn(self.limiter.acquire("k", &Cost::new()));
        (0..clients).map(ask).collect()
    }
}

#[tokio::test]
async fn clients_of_one_key_are_granted_in_one_round_trip() {
    let distant = Distant::start(Quota::new().rpd(1_000_000));
    let decided = distant.shared.status().decided;
    for round in 1..=10 {
        let before = distant.calls();
        distant.proxy.hold();
        let asking = distant.ask(CLIENTS);
        // All have asked before the first answer arrives.
        distant.until_calls(before + CLIENTS).await;
        assert_eq!(distant.calls(), before + CLIENTS);
        distant.proxy.release();
        for request in asking {
            drop(request.await.unwrap().unwrap());
        }
        assert_eq!(distant.shared.status().decided, decided + round * CLIENTS);
        until("ends are acknowledged", || distant.shared.status().unacknowledged == 0);
    }
}

#[tokio::test]
async fn request_that_awaits_answer_refuses_no_other() {
    let distant = Distant::start(Quota::new().rpd(1_000_000));
    let before = distant.calls();
    distant.proxy.hold();
    let waiting = distant.ask(1);
    distant.until_calls(before + 1).await;
    let immediate: Vec<Asking> = (0..CLIENTS)
        .map(|_| tokio::spawn(distant.limiter.acquire("k", &Cost::new()).max_wait(Duration::ZERO)))
        .collect();
    let limiter = distant.limiter.clone();
    let try_now = tokio::task::spawn_blocking(move || limiter.try_acquire("k", &Cost::new()));
    distant.until_calls(before + 1 + CLIENTS + 1).await;
    distant.proxy.release();
    try_now.await.unwrap().unwrap();
    for request in immediate.into_iter().chain(waiting) {
        drop(request.await.unwrap().unwrap());
    }
}
