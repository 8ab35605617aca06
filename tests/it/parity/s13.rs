//! s13: the patterns of an agent (fallback, 429s, a bounded wait, requests in flight):
//! `examples/agent_swarm.rs`, as it is.

use std::sync::Arc;
use std::time::Duration;

use agent_swarm::{Outcome, Way};
use tollgate::cluster::{Bus, LocalBus};

#[path = "../../../examples/agent_swarm.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod agent_swarm;

/// 50 agents with so many tasks each.
async fn run(tasks: u64, way: Way) -> Outcome {
    let outcome = agent_swarm::run(tasks, &way).await.unwrap();
    assert_eq!(outcome.answered + outcome.fell_back, 50 * tasks, "each task is done once");
    assert!(outcome.fell_back <= 50 * tasks / 10, "only what is not important falls back");
    assert!((1..=4).contains(&outcome.in_flight), "{outcome:?}");
    outcome
}

#[tokio::test(start_paused = true)]
async fn s13_fifty_agents_on_a_bus_are_refused_less_and_done_sooner_than_each_for_itself() {
    let local: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let alone = run(100, Way::ForItself).await;
    let on_a_bus = run(100, Way::OnBuses(vec![local; 50])).await;
    assert!(alone.refused > 0);
    assert!(on_a_bus.refused < alone.refused / 2, "{on_a_bus:?}, alone {alone:?}");
    assert!(on_a_bus.took < alone.took, "{on_a_bus:?}, alone {alone:?}");
}

#[tokio::test(start_paused = true)]
async fn s13_with_a_share_each_nobody_is_refused() {
    let shares = run(100, Way::Shares).await;
    assert_eq!(shares.refused, 0);
    assert!(shares.put_off > 0 && shares.fell_back > 0, "{shares:?}");
    // 4,550 requests, of which 1,200 go at once, by 20 a second.
    assert!(shares.took < Duration::from_secs(180), "{shares:?}");
}
