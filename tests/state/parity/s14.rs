//! s14: many agents share one limit.

use std::sync::Arc;
use std::time::Duration;

use paceline::cluster::{OnFailure, Shared};
use paceline::limiter::{Backend, Code, Limiter};
use paceline::quota::{Cost, Quota};

use super::rig::builder;
use paceline_testing::servers::Redis;

/// Returns an agent that shares only the server with others, as in a separate process.
fn agent(redis: &Redis, quota: &Quota) -> Limiter {
    let shared = Shared::builder(redis.url(), "swarm").on_failure(OnFailure::Closed);
    let shared = shared.timeout(Duration::from_secs(2)).connect().unwrap();
    builder().quota("k", quota.clone()).backend(shared as Arc<dyn Backend>).build().unwrap()
}

#[test]
fn s14_agents_share_one_limit() {
    let redis = Redis::start();
    let agents: Vec<_> = (0..12).map(|_| agent(&redis, &Quota::new().rpd(100))).collect();
    let taken = std::thread::scope(|scope| {
        let take = |agent: &Limiter| {
            (0..100).filter(|_| agent.try_acquire("k", &Cost::new()).is_ok()).count()
        };
        let threads: Vec<_> = agents.iter().map(|agent| scope.spawn(move || take(agent))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(taken, 100);
}

#[test]
fn s14_requests_in_flight_of_one_agent_count_for_others() {
    let redis = Redis::start();
    let quota = Quota::new().rpd(100).concurrency(1);
    let (one, other) = (agent(&redis, &quota), agent(&redis, &quota));
    let permit = one.try_acquire("k", &Cost::new()).unwrap();
    let refused = other.try_acquire("k", &Cost::new()).unwrap_err();
    assert_eq!(refused.code, Code::ConcurrencyExceeded);
    permit.settle(&Cost::new());
    // The end is reported without waiting.
    let end = other.now() + Duration::from_nanos(30_000_000_000);
    while other.try_acquire("k", &Cost::new()).is_err() {
        assert!(other.now() < end, "the end is not reported");
    }
}
