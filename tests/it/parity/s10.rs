//! The buses: within a process, NATS and Redis. More of the latter two, against real servers that are
//! killed and frozen: `tests/state/cluster/bus_servers.rs`.

use std::sync::Arc;

use tollgate::cluster::{Agent, Bus, LocalBus};

use super::s05::amounts;
use super::s06::limiter;

#[test]
fn s10_a_bus_within_the_process_carries_a_reduction_to_all() {
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let limiters: Vec<_> = (0..20).map(|_| limiter()).collect();
    for (number, limiter) in limiters.iter().enumerate() {
        Agent::join(limiter, Arc::clone(&bus), format!("agent-{number}")).unwrap();
    }
    limiters[7].feedback().reduce("k", "received 429 response");
    assert!(limiters.iter().all(|limiter| amounts(limiter) == [(50, 100)]));
    assert_eq!(bus.status().published, 1, "nobody repeats it");
}
