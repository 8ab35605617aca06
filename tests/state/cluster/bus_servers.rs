//! Each behaviour over NATS and over Redis.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tollgate::cluster::{Agent, Bus, NatsBus, RedisBus};
use tollgate::limiter::{Code, RateLimited};
use tollgate::quota::Cost;

use super::bus::{Swarm, builder, capacity, overhear, until};
use tollgate_testing::servers::{self, Server};

/// A server of a bus.
trait Broker {
    fn start() -> Self;
    fn connect(&self) -> Arc<dyn Bus>;
    fn server(&mut self) -> &mut Server;
    fn restart(&mut self);
}

impl Broker for servers::Nats {
    fn start() -> Self {
        Self::start()
    }

    fn connect(&self) -> Arc<dyn Bus> {
        Arc::new(NatsBus::connect(&self.url()).unwrap())
    }

    fn server(&mut self) -> &mut Server {
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

    fn server(&mut self) -> &mut Server {
        self.server()
    }

    fn restart(&mut self) {
        self.restart();
    }
}

macro_rules! over_each {
    ($($behaviour:ident),* $(,)?) => {
        mod over_nats {
            $(#[test] fn $behaviour() { super::$behaviour::<tollgate_testing::servers::Nats>(); })*
        }
        mod over_redis {
            $(#[test] fn $behaviour() { super::$behaviour::<tollgate_testing::servers::Redis>(); })*
        }
    };
}

over_each!(
    one_of_twenty_announces_and_all_reduce,
    a_refusal_of_one_pauses_the_others,
    a_bus_that_was_killed_carries_again_and_the_reduction_holds_meanwhile,
    a_bus_that_is_down_at_the_start_is_found_later,
    a_frozen_bus_holds_nobody_up_and_what_it_loses_is_counted,
    a_subscription_that_was_ended_hears_no_more,
);

fn one_of_twenty_announces_and_all_reduce<B: Broker>() {
    let broker = B::start();
    let swarm = Swarm::new(20, || broker.connect());
    swarm.wait_until_heard(&*broker.connect());
    let begin = Instant::now();
    assert!(swarm.limiter(7).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(19);
    println!("19 followed within {:?}", begin.elapsed());
    assert_eq!(swarm.capacities("gpt-4o"), [250; 20]);
    let (_, announcer) = &swarm.agents[7];
    until("its own message is back", || !announcer.status().ignored.is_empty());
    assert_eq!(capacity(swarm.limiter(7), "gpt-4o"), 250, "its own message changes nothing");
    let told: u64 = swarm.agents.iter().map(|(_, agent)| agent.status().announced).sum();
    assert_eq!(told, 1, "nobody repeats what it heard");
}

fn a_refusal_of_one_pauses_the_others<B: Broker>() {
    let broker = B::start();
    let swarm = Swarm::new(5, || broker.connect());
    swarm.wait_until_heard(&*broker.connect());
    let asked = RateLimited::new(Some(Duration::from_secs(60)));
    swarm.limiter(0).feedback().rate_limited("gpt-4o", &asked);
    until("all pause", || {
        swarm.agents.iter().all(|(limiter, _)| {
            let refused = limiter.try_acquire("gpt-4o", &Cost::new()).map(drop);
            refused.is_err_and(|refused| refused.code == Code::CoolingDown)
        })
    });
    swarm.wait_for_followers(4);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 5], "and each reduces once");
}

fn a_bus_that_was_killed_carries_again_and_the_reduction_holds_meanwhile<B: Broker>() {
    let mut broker = B::start();
    let swarm = Swarm::new(5, || broker.connect());
    let probe = broker.connect();
    swarm.wait_until_heard(&*probe);
    broker.server().kill();
    until("all know that it is gone", || swarm.bus_is(false));
    assert!(swarm.limiter(0).feedback().reduce("gpt-4o", "received 429 response"));
    assert_eq!(swarm.capacities("gpt-4o"), [250, 500, 500, 500, 500]);
    until("what can't be sent is counted", || swarm.agents[0].1.status().bus.failed == 1);
    broker.restart();
    swarm.wait_until_heard(&*probe);
    assert!(swarm.bus_is(true));
    assert!(swarm.limiter(1).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(3);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 5]);
}

fn a_bus_that_is_down_at_the_start_is_found_later<B: Broker>() {
    let mut broker = B::start();
    broker.server().kill();
    let swarm = Swarm::new(3, || broker.connect());
    assert!(swarm.limiter(0).try_acquire("gpt-4o", &Cost::new()).is_ok());
    assert!(swarm.limiter(0).feedback().reduce("gpt-4o", "received 429 response"));
    assert_eq!(swarm.capacities("gpt-4o"), [250, 500, 500]);
    until("what can't be sent is counted", || swarm.agents[0].1.status().bus.failed == 1);
    broker.restart();
    swarm.wait_until_heard(&*broker.connect());
    assert!(swarm.limiter(1).feedback().reduce("gpt-4o", "received 429 response"));
    swarm.wait_for_followers(1);
    assert_eq!(swarm.capacities("gpt-4o"), [250; 3]);
}

fn a_frozen_bus_holds_nobody_up_and_what_it_loses_is_counted<B: Broker>() {
    let mut broker = B::start();
    let swarm = Swarm::new(2, || broker.connect());
    let probe = broker.connect();
    swarm.wait_until_heard(&*probe);
    broker.server().freeze();
    let (limiter, agent) = &swarm.agents[0];
    let refuse = |key: &str| {
        assert!(limiter.try_acquire(key, &Cost::new()).is_ok());
        limiter.feedback().rate_limited(key, &RateLimited::new(Some(Duration::from_secs(1))));
    };
    // Each of these returns, though nothing is carried.
    (0..100).for_each(|number| refuse(&format!("gpt-{number}")));
    until("it is known to be lost", || !agent.status().bus.connected);
    (100..3_000).for_each(|number| refuse(&format!("gpt-{number}")));
    let bus = agent.status().bus;
    assert!(bus.dropped > 1_000, "more than its queue holds: {bus:?}");
    assert_eq!([capacity(limiter, "gpt-0"), capacity(limiter, "gpt-2999")], [250, 250]);
    broker.server().thaw();
    swarm.wait_until_heard(&*probe);
    assert!(swarm.limiter(1).feedback().reduce("gpt-4o", "received 429 response"));
    until("it carries again", || capacity(limiter, "gpt-4o") == 250);
}

fn a_subscription_that_was_ended_hears_no_more<B: Broker>() {
    let broker = B::start();
    let bus = broker.connect();
    let calls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&calls);
    let once = move |_: &[u8]| {
        counter.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Break(())
    };
    bus.subscribe("news", Arc::new(once));
    let second = overhear(&*bus, "news");
    until("both hear it", || {
        bus.publish("news", b"1");
        calls.load(Ordering::Relaxed) > 0 && second.try_recv().is_ok()
    });
    // What is published faster than it can be sent is dropped.
    until("the other does", || {
        bus.publish("news", b"2");
        second.try_recv().is_ok_and(|message| message == b"2")
    });
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn a_password_in_the_url_is_used_and_never_shown() {
    let mut server = servers::Redis::start();
    let address = server.server().address;
    tell(address, "CONFIG SET requirepass hunter2\r\n");
    let redis = RedisBus::connect(&format!("redis://:hunter2@{address}")).unwrap();
    until("the password is right", || redis.status().connected);
    assert!(!format!("{redis:?}").contains("hunter2"));
    let mut server = servers::Nats::start();
    let nats = NatsBus::connect(&format!("nats://u:hunter2@{}", server.server().address)).unwrap();
    until("it connects", || nats.status().connected);
    assert!(!format!("{nats:?}").contains("hunter2"));
}

#[test]
fn a_url_that_is_none_of_a_bus_is_an_error_without_the_url() {
    for url in ["http://u:hunter2@h", "redis//u:hunter2@h", "", "redis://u:hunter2@h:port"] {
        let error = RedisBus::connect(url).unwrap_err().to_string();
        assert_eq!(error, "bus URL: not supported; expected redis:// or rediss://");
    }
    for url in ["http://u:hunter2@h", "nats://u:hunter2@h:port", "nats://", "redis://h"] {
        let error = NatsBus::connect(url).unwrap_err().to_string();
        assert_eq!(error, "bus URL: not supported; expected nats://, tls://, ws:// or wss://");
    }
}

#[test]
fn agents_on_the_same_bus_hear_each_other_too() {
    let server = servers::Nats::start();
    let bus = server.connect();
    let limiters = [builder().build().unwrap(), builder().build().unwrap()];
    let agents = ["a", "b"];
    let joined = limiters.iter().zip(agents);
    let agents: Vec<_> =
        joined.map(|(limiter, id)| Agent::join(limiter, Arc::clone(&bus), id).unwrap()).collect();
    until("both hear it", || {
        bus.publish("ratelimit.cooldown", b"?");
        agents.iter().all(|agent| agent.status().malformed > 0)
    });
    limiters[0].feedback().reduce("gpt-4o", "received 429 response");
    until("the other reduces", || capacity(&limiters[1], "gpt-4o") == 250);
}

/// Says a line to a Redis server.
fn tell(address: SocketAddr, line: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
}
