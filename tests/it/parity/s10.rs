//! The bus within a process. `tests/state/cluster/bus_servers.rs` tests the buses over NATS and Redis,
//! with real servers that are killed and frozen.

use std::sync::Arc;

use paceline::cluster::{Agent, Bus, LocalBus};

use super::s05::amounts;
use super::s06::limiter;

#[test]
fn s10_local_bus_carries_reduction_to_all_limiters() {
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let limiters: Vec<_> = (0..20).map(|_| limiter()).collect();
    for (number, limiter) in limiters.iter().enumerate() {
        Agent::join(limiter, Arc::clone(&bus), format!("agent-{number}")).unwrap();
    }
    limiters[7].feedback().reduce("k", "received 429 response");
    assert!(limiters.iter().all(|limiter| amounts(limiter) == [(50, 100)]));
    assert_eq!(bus.status().published, 1, "receivers do not repeat it");
}
