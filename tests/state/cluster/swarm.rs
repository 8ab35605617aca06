//! Agents on a bus, and helpers to wait for updates.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use paceline::cluster::{Agent, Bus};
use paceline::limiter::{Builder, Event, Limiter};
use paceline::quota::Quota;

/// Agents with 500 requests per minute for keys that begin with `gpt-`, on the system clock.
pub(super) struct Swarm {
    pub(super) agents: Vec<(Limiter, Agent)>,
    /// The indexes of agents that have applied an update of another agent.
    followed: Receiver<usize>,
}

impl Swarm {
    /// Starts this many agents, each with a separate connection to the bus.
    pub(super) fn new(agents: usize, bus: impl Fn() -> Arc<dyn Bus>) -> Self {
        let (sender, followed) = mpsc::channel();
        let agents = (0..agents).map(|number| {
            let (limiter, sender) = (builder().build().unwrap(), sender.clone());
            limiter.listen(move |event| {
                if let Event::Reduced { agent: Some(_), .. } = event {
                    let _ = sender.send(number);
                }
            });
            let agent = Agent::join(&limiter, bus(), format!("agent-{number}")).unwrap();
            (limiter, agent)
        });
        Self { agents: agents.collect(), followed }
    }

    pub(super) fn limiter(&self, number: usize) -> &Limiter {
        &self.agents[number].0
    }

    pub(super) fn bus_is(&self, connected: bool) -> bool {
        self.agents.iter().all(|(_, agent)| agent.status().bus.connected == connected)
    }

    /// Waits until each agent receives messages, by counting malformed ones.
    pub(super) fn wait_until_subscribed(&self, probe: &dyn Bus) {
        let received = || self.agents.iter().map(|(_, agent)| agent.status().malformed);
        let before: Vec<u64> = received().collect();
        let all_have = || received().zip(&before).all(|(now, before)| now > *before);
        let deadline = Instant::now() + PATIENCE;
        while !all_have() {
            assert!(Instant::now() < deadline, "not all agents receive messages");
            // The agents subscribe to this subject last.
            probe.publish("ratelimit.cooldown", b"?");
            wait(Instant::now() + Duration::from_millis(20), &all_have);
        }
    }

    /// Waits until this many agents have applied an update.
    pub(super) fn wait_for_followers(&self, count: usize) {
        let mut followers: Vec<usize> = (0..count)
            .map(|_| self.followed.recv_timeout(PATIENCE).expect("an agent applies the update"))
            .collect();
        followers.sort_unstable();
        followers.dedup();
        assert_eq!(followers.len(), count, "each agent applies the update once");
    }

    pub(super) fn capacities(&self, key: &str) -> Vec<u64> {
        self.agents.iter().map(|(limiter, _)| capacity(limiter, key)).collect()
    }
}

pub(super) fn builder() -> Builder {
    Limiter::builder().quota("gpt-*", Quota::new().rpm(500))
}

pub(super) fn capacity(limiter: &Limiter, key: &str) -> u64 {
    limiter.stats(key).limits[0].limit
}

/// Subscribes to a subject and returns the messages published from now on.
pub(super) fn subscribe_to(bus: &dyn Bus, subject: &str) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let forward = move |message: &[u8]| match sender.send(message.to_vec()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    bus.subscribe(subject, Arc::new(forward));
    receiver
}

fn wait(deadline: Instant, mut condition: impl FnMut() -> bool) -> bool {
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    true
}

/// Long enough for a machine that is busy with other tests.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
