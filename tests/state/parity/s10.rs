use std::sync::Arc;

use paceline::cluster::{Agent, Bus};
use paceline::limiter::{Limiter, Reduction};
use paceline::quota::Quota;

use super::rig::{buckets, builder};

fn limiter() -> Limiter {
    let quota = buckets(Quota::new().rpm(100));
    builder().reduction(Reduction::new()).quota("k", quota).build().unwrap()
}

fn amounts(limiter: &Limiter) -> Vec<(u64, u64)> {
    limiter.stats("k").limits.iter().map(|limit| (limit.limit, limit.original)).collect()
}

/// Returns the address of a port without a listener.
fn unused_address() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn assert_reduces_without(bus: Arc<dyn Bus>) {
    let limiter = limiter();
    let agent = Agent::join(&limiter, bus, "agent-1").unwrap();
    assert!(limiter.feedback().reduce("k", "received 429 response"));
    assert_eq!(amounts(&limiter), [(50, 100)]);
    let status = agent.status();
    assert_eq!((status.announced, status.bus.connected), (1, false));
    assert_eq!(status.bus.published, 0);
}

#[test]
fn s10_local_reduction_holds_while_nats_is_down() {
    let url = format!("nats://{}", unused_address());
    assert_reduces_without(Arc::new(paceline::cluster::NatsBus::connect(&url).unwrap()));
}

#[test]
fn s10_local_reduction_holds_while_redis_is_down() {
    let url = format!("redis://{}", unused_address());
    assert_reduces_without(Arc::new(paceline::cluster::RedisBus::connect(&url).unwrap()));
}
