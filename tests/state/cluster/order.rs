//! The order in which requests of several processes are granted that wait for one limit.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::Shared;
use paceline::limiter::{Backend, Limiter, Priority, WaitPolicy};
use paceline::quota::{Algorithm, Cost, Dimension, Limit, Margin, Quota, Window};
use parking_lot::Mutex;

use super::shared::closed;
use paceline_testing::servers::Redis;
use paceline_testing::until;

/// The names of the grants of several processes, in their order.
type Grants = Arc<Mutex<Vec<&'static str>>>;

/// Several processes' limiters with one quota and one policy.
struct Fleet {
    _redis: Redis,
    processes: Vec<(Limiter, Arc<Shared>)>,
    grants: Grants,
}

impl Fleet {
    fn start(processes: usize, quota: &Quota, policy: &WaitPolicy) -> Self {
        let redis = Redis::start();
        let start = |_| {
            let shared = closed(&redis.url()).connect().unwrap();
            let backend = Arc::clone(&shared) as Arc<dyn Backend>;
            let builder = Limiter::builder().margin(Margin::NONE).quota("*", quota.clone());
            let limiter = builder.wait_policy(policy.clone()).backend(backend).build().unwrap();
            (limiter, shared)
        };
        let processes = (0..processes).map(start).collect();
        Self { _redis: redis, processes, grants: Grants::default() }
    }

    /// Starts requests of a process, which all wait for one key.
    fn request(
        &self,
        process: usize,
        name: &'static str,
        count: usize,
        cost: &Cost,
        priority: Priority,
    ) {
        for _ in 0..count {
            let (limiter, grants) = (self.processes[process].0.clone(), Arc::clone(&self.grants));
            let cost = cost.clone();
            tokio::spawn(async move {
                let acquire = limiter.acquire("k", &cost).priority(priority).flow(name);
                if let Ok(permit) = acquire.await {
                    grants.lock().push(name);
                    permit.settle(&cost);
                }
            });
        }
    }

    /// Waits until the store has decided about this many calls of each of the first processes.
    fn wait_for_calls(&self, processes: usize, calls: u64) {
        let processes = &self.processes[..processes];
        until("requests wait", || {
            processes.iter().all(|(_, shared)| shared.status().decided >= calls)
        });
    }

    fn count(&self, name: &str) -> usize {
        self.grants.lock().iter().filter(|grant| **grant == name).count()
    }
}

/// A token bucket of this many requests or tokens per window, all of which can be used at once.
fn bucket(dimension: Dimension, amount: u64, window: Duration) -> Quota {
    let limit = Limit::new(dimension, amount, Window::new(window).unwrap()).unwrap();
    Quota::new().limit(limit.with_algorithm(Algorithm::TokenBucket))
}

#[tokio::test(flavor = "multi_thread")]
async fn interactive_request_passes_waiting_batch_requests_of_other_processes() {
    // A large request needs 100 s of refill, the small one a third of a second.
    let quota = bucket(Dimension::Tokens, 600, Duration::from_secs(200));
    let fleet = Fleet::start(3, &quota, &WaitPolicy::new());
    let batch = Cost::new().requests(0).tokens(300);
    for process in [0, 1] {
        fleet.request(process, "batch", 4, &batch, Priority::BATCH);
    }
    until("two are granted", || fleet.count("batch") == 2);
    // The first ones of both processes wait, and ask again.
    fleet.wait_for_calls(2, 6);
    let small = Cost::new().requests(0).tokens(1);
    fleet.request(2, "interactive", 1, &small, Priority::INTERACTIVE);
    until("it is granted", || fleet.count("interactive") == 1);
    assert_eq!(*fleet.grants.lock(), ["batch", "batch", "interactive"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_of_several_processes_are_all_served() {
    let quota = bucket(Dimension::Requests, 4, Duration::from_millis(200));
    let fleet = Fleet::start(3, &quota, &WaitPolicy::new());
    let flows = ["one", "two", "three"];
    for (process, name) in flows.into_iter().enumerate() {
        fleet.request(process, name, 100, &Cost::new(), Priority::NORMAL);
    }
    // The shares depend on the time at which each asks again: those of the script are tested with set time.
    until("each is granted", || flows.iter().all(|name| fleet.count(name) >= 5));
}
