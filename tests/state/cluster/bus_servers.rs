//! Behaviour of the bus over NATS and over Redis.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use paceline::cluster::{Agent, Bus, NatsBus, RedisBus};
use paceline::limiter::{Code, RateLimited};
use paceline::quota::Cost;

use super::swarm::{Swarm, builder, capacity, subscribe_to};
use paceline_testing::servers::{self, ServerProcess};
use paceline_testing::until;

/// A server of a bus.
trait Broker {
    fn start() -> Self;
    fn connect(&self) -> Arc<dyn Bus>;
    fn server(&mut self) -> &mut ServerProcess;
    fn restart(&mut self);
}

impl Broker for servers::Nats {
    fn start() -> Self {
        Self::start()
    }

    fn connect(&self) -> Arc<dyn Bus> {
        Arc::new(NatsBus::connect(&self.url()).unwrap())
    }

    fn server(&mut self) -> &mut ServerProcess {
        self.server()
    }

    fn restart(&mut self) {
        self.restart();
    }
}

impl Broker for servers::Redis {
    fn start() -> Self {
        Self::start()
    }

    fn connect(&self) -> Arc<dyn Bus> {
        Arc::new(RedisBus::connect(&self.url()).unwrap())
    }

    fn server(&mut self) -> &mut ServerProcess {
        self.server()
    }

    fn restart(&mut self) {
        self.restart();
    }
}

macro_rules! over_each {
    ($($behaviour:ident),* $(,)?) => {
        mod over_nats {
            $(#[test] fn $behaviour() { super::$behaviour::<paceline_testing::servers::Nats>(); })*
        }
        mod over_redis {
            $(#[test] fn $behaviour() { super::$behaviour::<paceline_testing::servers::Redis>(); })*
        }
    };
}

over_each!(
    one_of_twenty_announces_and_all_reduce,
    refusal_on_one_agent_pauses_the_others,
    bus_killed_and_restarted_resumes_and_reduction_holds,
    bus_unavailable_at_start_is_connected_later,
    frozen_bus_blocks_no_agent_and_counts_losses,
    ended_subscription_receives_no_messages,
);

fn one_of_twenty_announces_and_all_reduce<B: Broker>() {
    let broker = B::start();
    let swarm = Swarm::new(20, || broker.connect());
    swarm.wait_until_subscribed(&*broker.connect());
    let begin = Instant::now();
    assert!(swarm.limiter(7).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(19);
    println!("19 followed within {:?}", begin.elapsed());
    assert_eq!(swarm.capacities("gpt-4o"), [250; 20]);
    let (_, announcer) = &swarm.agents[7];
    until("the own message returns", || !announcer.status().ignored.is_empty());
    assert_eq!(capacity(swarm.limiter(7), "gpt-4o"), 250, "the own message is ignored");
    let announced: u64 = swarm.agents.iter().map(|(_, agent)| agent.status().announced).sum();
    assert_eq!(announced, 1, "receivers do not repeat it");
}

fn refusal_on_one_agent_pauses_the_others<B: Broker>() {
    let broker = B::start();
    let swarm = Swarm::new(5, || broker.connect());
    swarm.wait_until_subscribed(&*broker.connect());
    let refusal = RateLimited::new(Some(Duration::from_secs(60)));
    swarm.limiter(0).feedback().rate_limited("gpt-4o", &refusal);
    until("all pause", || {
        swarm.agents.iter().all(|(limiter, _)| {
            let refused = limiter.try_acquire("gpt-4o", &Cost::new()).map(drop);
            refused.is_err_and(|refused| refused.code == Code::CoolingDown)
        })
    });
    swarm.wait_for_followers(4);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 5], "each agent reduces once");
}

fn bus_killed_and_restarted_resumes_and_reduction_holds<B: Broker>() {
    let mut broker = B::start();
    let swarm = Swarm::new(5, || broker.connect());
    let probe = broker.connect();
    swarm.wait_until_subscribed(&*probe);
    broker.server().kill();
    until("all agents are disconnected", || swarm.bus_is(false));
    assert!(swarm.limiter(0).feedback().reduce("gpt-4o", "received 429 response"));
    assert_eq!(swarm.capacities("gpt-4o"), [250, 500, 500, 500, 500]);
    until("the unsent message is counted", || swarm.agents[0].1.status().bus.failed == 1);
    broker.restart();
    swarm.wait_until_subscribed(&*probe);
    assert!(swarm.bus_is(true));
    assert!(swarm.limiter(1).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(3);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 5]);
}

fn bus_unavailable_at_start_is_connected_later<B: Broker>() {
    let mut broker = B::start();
    broker.server().kill();
    let swarm = Swarm::new(3, || broker.connect());
    assert!(swarm.limiter(0).try_acquire("gpt-4o", &Cost::new()).is_ok());
    assert!(swarm.limiter(0).feedback().reduce("gpt-4o", "received 429 response"));
    assert_eq!(swarm.capacities("gpt-4o"), [250, 500, 500]);
    until("the unsent message is counted", || swarm.agents[0].1.status().bus.failed == 1);
    broker.restart();
    swarm.wait_until_subscribed(&*broker.connect());
    assert!(swarm.limiter(1).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(1);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 3]);
}

fn frozen_bus_blocks_no_agent_and_counts_losses<B: Broker>() {
    let mut broker = B::start();
    let swarm = Swarm::new(2, || broker.connect());
    let probe = broker.connect();
    swarm.wait_until_subscribed(&*probe);
    broker.server().freeze();
    let (limiter, agent) = &swarm.agents[0];
    let refuse = |key: &str| {
        assert!(limiter.try_acquire(key, &Cost::new()).is_ok());
        limiter.feedback().rate_limited(key, &RateLimited::new(Some(Duration::from_secs(1))));
    };
    // Each call returns, though no message is sent.
    (0..100).for_each(|number| refuse(&format!("gpt-{number}")));
    until("the connection is known to be lost", || !agent.status().bus.connected);
    (100..3_000).for_each(|number| refuse(&format!("gpt-{number}")));
    let bus = agent.status().bus;
    assert!(bus.dropped > 1_000, "more than the queue holds: {bus:?}");
    assert_eq!([capacity(limiter, "gpt-0"), capacity(limiter, "gpt-2999")], [250, 250]);
    broker.server().thaw();
    swarm.wait_until_subscribed(&*probe);
    assert!(swarm.limiter(1).feedback().reduce("gpt-4o", "received 429 response"));
    until("messages are delivered again", || capacity(limiter, "gpt-4o") == 250);
}

fn ended_subscription_receives_no_messages<B: Broker>() {
    let broker = B::start();
    let bus = broker.connect();
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    let once = move |_: &[u8]| {
        counter.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Break(())
    };
    bus.subscribe("subject", Arc::new(once));
    let second = subscribe_to(&*bus, "subject");
    until("both receive it", || {
        bus.publish("subject", b"1");
        calls.load(Ordering::Relaxed) > 0 && second.try_recv().is_ok()
    });
    // Messages published faster than they can be sent are dropped.
    until("the other receives it", || {
        bus.publish("subject", b"2");
        second.try_recv().is_ok_and(|message| message == b"2")
    });
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn password_in_url_is_used_and_never_shown() {
    let mut server = servers::Redis::start();
    let address = server.server().address;
    send_line(address, "CONFIG SET requirepass hunter2\r\n");
    let redis = RedisBus::connect(&format!("redis://:hunter2@{address}")).unwrap();
    until("the password is right", || redis.status().connected);
    assert!(!format!("{redis:?}").contains("hunter2"));
    let mut server = servers::Nats::start();
    let nats = NatsBus::connect(&format!("nats://u:hunter2@{}", server.server().address)).unwrap();
    until("the client connects", || nats.status().connected);
    assert!(!format!("{nats:?}").contains("hunter2"));
}

#[test]
fn unsupported_bus_url_is_an_error_without_the_url() {
    for url in ["http://u:hunter2@h", "redis//u:hunter2@h", "", "redis://u:hunter2@h:port"] {
        let error = RedisBus::connect(url).unwrap_err().to_string();
        let expected = "redis://, valkey:// or unix://, or rediss:// or valkeys:// with TLS";
        assert_eq!(error, format!("bus URL: not supported; expected {expected}"));
    }
    for url in ["http://u:hunter2@h", "nats://u:hunter2@h:port", "nats://", "redis://h"] {
        let error = NatsBus::connect(url).unwrap_err().to_string();
        assert_eq!(error, "bus URL: not supported; expected nats://, tls://, ws:// or wss://");
    }
}

#[test]
fn agents_on_the_same_connection_receive_each_other() {
    let server = servers::Nats::start();
    let bus = server.connect();
    let limiters = [builder().build().unwrap(), builder().build().unwrap()];
    let agents = ["a", "b"];
    let joined = limiters.iter().zip(agents);
    let agents: Vec<_> =
        joined.map(|(limiter, id)| Agent::join(limiter, Arc::clone(&bus), id).unwrap()).collect();
    until("both receive it", || {
        bus.publish("ratelimit.cooldown", b"?");
        agents.iter().all(|agent| agent.status().malformed > 0)
    });
    limiters[0].feedback().reduce("gpt-4o", "received 429 response");
    until("the other reduces", || capacity(&limiters[1], "gpt-4o") == 250);
}

/// Sends a line to a Redis server.
fn send_line(address: SocketAddr, line: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
}
