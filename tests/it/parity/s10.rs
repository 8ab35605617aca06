//! The buses: within a process, NATS and Redis. More of the latter two, against real servers that are
//! killed and frozen: `tests/it/cluster/bus_servers.rs`.

use std::sync::Arc;

use tollgate::cluster::{Agent, Bus, Local};

use super::s05::amounts;
use super::s06::limiter;

#[test]
fn s10_a_bus_within_the_process_carries_a_reduction_to_all() {
    let bus: Arc<dyn Bus> = Arc::new(Local::new());
    let limiters: Vec<_> = (0..20).map(|_| limiter()).collect();
    for (number, limiter) in limiters.iter().enumerate() {
        Agent::join(limiter, Arc::clone(&bus), format!("agent-{number}")).unwrap();
    }
    limiters[7].announce_reduced("k", "received 429 response");
    assert!(limiters.iter().all(|limiter| amounts(limiter) == [(50, 100)]));
    assert_eq!(bus.status().published, 1, "nobody repeats it");
}

/// A port that nobody listens at.
#[cfg(any(feature = "nats", feature = "redis"))]
fn nowhere() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[cfg(any(feature = "nats", feature = "redis"))]
fn reduces_without(bus: Arc<dyn Bus>) {
    let limiter = limiter();
    let agent = Agent::join(&limiter, bus, "agent-1").unwrap();
    assert!(limiter.announce_reduced("k", "received 429 response"));
    assert_eq!(amounts(&limiter), [(50, 100)]);
    let status = agent.status();
    assert_eq!((status.announced, status.bus.connected), (1, false));
    assert_eq!(status.bus.published, 0);
}

#[cfg(feature = "nats")]
#[test]
fn s10_the_local_reduction_holds_while_nats_is_down() {
    let url = format!("nats://{}", nowhere());
    reduces_without(Arc::new(tollgate::cluster::Nats::connect(&url).unwrap()));
}

#[cfg(feature = "redis")]
#[test]
fn s10_the_local_reduction_holds_while_redis_is_down() {
    let url = format!("redis://{}", nowhere());
    reduces_without(Arc::new(tollgate::cluster::Redis::connect(&url).unwrap()));
}
