//! Agents on a bus, and what is waited for.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use tollgate::cluster::{Agent, Bus};
use tollgate::limiter::{Builder, Event, Limiter};
use tollgate::quota::Quota;

/// Agents with 500 requests a minute each for keys that begin with `gpt-`, on the clock of the system.
pub(super) struct Swarm {
    pub(super) agents: Vec<(Limiter, Agent)>,
    /// Who has followed another.
    followed: Receiver<usize>,
}

impl Swarm {
    /// So many, each with a bus of its own to the same server.
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

    /// Waits until each hears the others: what is malformed is counted.
    pub(super) fn wait_until_heard(&self, probe: &dyn Bus) {
        let heard = || self.agents.iter().map(|(_, agent)| agent.status().malformed);
        let before: Vec<u64> = heard().collect();
        let all_have = || heard().zip(&before).all(|(now, before)| now > *before);
        let deadline = Instant::now() + PATIENCE;
        while !all_have() {
            assert!(Instant::now() < deadline, "not all hear the bus");
            // The agents subscribe to this one last.
            probe.publish("ratelimit.cooldown", b"?");
            wait(Instant::now() + Duration::from_millis(20), &all_have);
        }
    }

    /// Waits until so many have followed another.
    pub(super) fn wait_for_followers(&self, count: usize) {
        let mut followers: Vec<usize> = (0..count)
            .map(|_| self.followed.recv_timeout(PATIENCE).expect("an agent follows"))
            .collect();
        followers.sort_unstable();
        followers.dedup();
        assert_eq!(followers.len(), count, "each follows once");
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

/// What is published on a subject from now on.
pub(super) fn overhear(bus: &dyn Bus, subject: &str) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let hear = move |message: &[u8]| match sender.send(message.to_vec()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    bus.subscribe(subject, Arc::new(hear));
    receiver
}

/// Waits until it is so.
pub(super) fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(wait(Instant::now() + PATIENCE, is_so), "not in time: {what}");
}

fn wait(deadline: Instant, mut is_so: impl FnMut() -> bool) -> bool {
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    true
}

/// A machine that is busy with other tests takes its time.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
