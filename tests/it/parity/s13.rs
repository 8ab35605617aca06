//! s13: the patterns of an agent (fallback, 429s, bounded waits, requests in flight). Runs
//! `examples/agent_swarm.rs`.

use std::sync::Arc;
use std::time::Duration;

use agent_swarm::{Outcome, Strategy};
use paceline::cluster::{Bus, LocalBus};

#[path = "../../../examples/agent_swarm.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod agent_swarm;

/// Runs 50 agents with this many tasks each.
async fn run(tasks: u64, strategy: Strategy) -> Outcome {
    let outcome = agent_swarm::run(tasks, &strategy).await.unwrap();
    assert_eq!(outcome.answered + outcome.fell_back, 50 * tasks, "each task ends once");
    assert!(outcome.fell_back <= 50 * tasks / 10, "only unimportant tasks fall back");
    assert!((1..=4).contains(&outcome.in_flight), "{outcome:?}");
    outcome
}

#[tokio::test(start_paused = true)]
async fn s13_fifty_agents_on_a_bus_are_refused_less_than_alone() {
    let local: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let alone = run(100, Strategy::Independent).await;
    let on_a_bus = run(100, Strategy::OnBuses(vec![local; 50])).await;
    assert!(alone.refused > 0);
    assert!(on_a_bus.refused < alone.refused / 2, "{on_a_bus:?}, alone {alone:?}");
    assert!(on_a_bus.took < alone.took, "{on_a_bus:?}, alone {alone:?}");
}

#[tokio::test(start_paused = true)]
async fn s13_fifty_agents_with_shares_are_never_refused() {
    let shares = run(100, Strategy::Shares).await;
    assert_eq!(shares.refused, 0);
    assert!(shares.postponed > 0 && shares.fell_back > 0, "{shares:?}");
    // 4,550 requests, of which 1,200 are sent immediately, then 20 per second.
    assert!(shares.took < Duration::from_secs(180), "{shares:?}");
}
