//! The log names the cause of an outage in plain words, once per outage.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::cluster::{Bus, NatsBus, OnFailure, RedisBus, Shared, SharingMode};
use paceline::quota::{Cost, Quota};

use super::failure::send_command;
use super::logs::{lines, record};
use super::shared::{admitted, limiter};
use paceline_testing::servers::{Nats, Redis};
use paceline_testing::until;

/// Asserts that the outage of a store that can't be connected to is logged once, with this cause.
fn assert_connect_cause(url: &str, address: &str, cause: &str) {
    let shared = assert_cause(url, address, cause);
    until("more attempts", || shared.status().connects >= 5);
    assert_eq!(lines(address).len(), 1);
}

/// Asserts that the outage of the store at this URL is logged, with this cause.
fn assert_cause(url: &str, address: &str, cause: &str) -> Arc<Shared> {
    record();
    let shared = Shared::builder(url, "account").on_failure(OnFailure::Closed).connect().unwrap();
    until("an outage is logged", || !lines(address).is_empty());
    let logged = lines(address);
    assert_eq!(logged.len(), 1, "{logged:#?}");
    assert!(logged[0].contains("WARN") && logged[0].contains(cause), "{}, not {cause}", logged[0]);
    assert!(logged[0].contains("the shared store is unavailable"), "{}", logged[0]);
    assert!(!logged[0].contains("secret"), "{}", logged[0]);
    assert!(shared.outage_cause().unwrap().contains(cause));
    assert!(!format!("{shared:?}").contains("secret"));
    shared
}

fn unused_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn unknown_host_is_named() {
    let url = "redis://user:secret@no-such-host.invalid:6379";
    assert_connect_cause(
        url,
        "no-such-host.invalid:6379",
        "the host name can't be resolved; correct",
    );
}

#[test]
fn refused_connection_is_named() {
    for scheme in ["redis", "rediss", "redis-cluster"] {
        let address = unused_address();
        let url = format!("{scheme}://user:secret@{address}");
        assert_connect_cause(
            &url,
            &address,
            "connection refused: no server listens at this address; ",
        );
    }
}

#[test]
fn missing_password_is_named() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    assert!(send_command(address, "CONFIG SET requirepass secret").starts_with("+OK"));
    assert_cause(&redis.url(), &address.to_string(), "the server requires a password; add");
}

#[test]
fn wrong_password_is_named() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    assert!(send_command(address, "CONFIG SET requirepass another").starts_with("+OK"));
    let url = format!("redis://:secret@{address}");
    assert_connect_cause(&url, &address.to_string(), "the server rejects the user or password; ");
}

#[test]
fn database_out_of_range_is_named() {
    let redis = Redis::with(&["--databases", "2"]);
    let address = redis.url().replace("redis://", "");
    let url = format!("{}/7", redis.url());
    assert_connect_cause(&url, &address, "the server has no database with this number; ");
}

#[test]
fn missing_permission_is_named() {
    let mut redis = Redis::start();
    let address = redis.server().address;
    let rule = "ACL SETUSER limited on >secret ~* +@all -eval -evalsha";
    assert!(send_command(address, rule).starts_with("+OK"));
    let url = format!("redis://limited:secret@{address}");
    assert_cause(&url, &address.to_string(), "access control list forbids a command or a key; ");
}

#[test]
fn refused_writes_are_named() {
    for (setting, cause) in [
        ("REPLICAOF 127.0.0.1 1", "the server is a read-only replica; use the address"),
        ("CONFIG SET maxmemory 1", "the server is out of memory; raise"),
        ("CONFIG SET min-replicas-to-write 1", "because too few replicas are connected; "),
    ] {
        let mut redis = Redis::start();
        let address = redis.server().address;
        assert!(send_command(address, setting).starts_with("+OK"));
        assert_cause(&redis.url(), &address.to_string(), cause);
    }
}

#[test]
fn silent_server_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let cause = "the server doesn't respond in time; ";
    assert_connect_cause(&format!("redis://:secret@{address}"), &address, cause);
}

#[test]
fn each_outage_is_logged_at_its_start_and_end() {
    record();
    let mut redis = Redis::start();
    let address = redis.server().address.to_string();
    let shared = Shared::builder(redis.url(), "account").on_failure(OnFailure::Open);
    let shared = shared.timeout(Duration::from_secs(2)).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(1_000));
    until("the store is available", || shared.status().connected);
    for outage in 1..=3 {
        redis.server().kill();
        until("the outage is logged", || lines(&address).len() == 2 * outage - 1);
        for _ in 0..outage * 4 {
            drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        }
        let connects = shared.status().connects;
        until("more attempts", || shared.status().connects > connects + 5);
        assert_eq!(lines(&address).len(), 2 * outage - 1);
        redis.restart();
        until("the end is logged", || lines(&address).len() == 2 * outage);
        let logged = lines(&address);
        let (begin, end) = (&logged[2 * outage - 2], &logged[2 * outage - 1]);
        // The connection is closed, and further ones are refused.
        assert!(begin.contains("WARN") && begin.contains("on_failure=Open"), "{begin}");
        assert!(end.contains("INFO") && end.contains("is available again"), "{end}");
        assert!(end.contains(&format!("degraded={} ", outage * 4)), "{end}");
        assert!(end.contains("retries=") && !end.contains("connects=0"), "{end}");
    }
    assert_eq!(shared.status().outages, 3);
}

#[test]
fn frozen_server_is_logged_once_although_attempts_repeat() {
    record();
    let mut redis = Redis::start();
    let address = redis.server().address.to_string();
    let shared = Shared::builder(redis.url(), "account").connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(1_000));
    until("the store is available", || shared.status().connected);
    redis.server().freeze();
    let _ = limiter.try_acquire("k", &Cost::new());
    let connects = shared.status().connects;
    until("more attempts", || shared.status().connects > connects + 3);
    let logged = lines(&address);
    assert_eq!(logged.len(), 1, "{logged:#?}");
    assert!(logged[0].contains("doesn't respond in time"), "{logged:#?}");
    redis.server().thaw();
    until("the end is logged", || lines(&address).len() == 2);
}

/// Asserts that the outages of a bus are logged with their cause, at the start and the end.
fn assert_bus_outages(bus: &dyn Bus, address: &str, stop: impl Fn(), start: impl Fn()) {
    until("the bus is connected", || bus.status().connected);
    for outage in 1..=2 {
        stop();
        let text = format!("server=\"{address}\"");
        until("the outage is logged", || lines(&text).len() == outage);
        let retries = bus.status().retries;
        until("more attempts", || bus.status().retries > retries + 2);
        let logged = lines(&text);
        assert_eq!(logged.len(), outage, "{logged:#?}");
        assert!(logged[outage - 1].contains("connection refused"), "{logged:#?}");
        assert!(logged[outage - 1].contains("the bus is unavailable"), "{logged:#?}");
        start();
        until("the bus is connected again", || bus.status().connected);
        assert_eq!(bus.status().outages, outage as u64);
    }
    assert!(!lines("the bus is available again").is_empty());
}

#[test]
fn outages_of_redis_bus_are_logged_with_cause() {
    record();
    let redis = std::cell::RefCell::new(Redis::start());
    let address = redis.borrow_mut().server().address.to_string();
    let bus = RedisBus::connect(&redis.borrow().url()).unwrap();
    let stop = || redis.borrow_mut().server().kill();
    assert_bus_outages(&bus, &address, stop, || redis.borrow_mut().restart());
}

#[test]
fn outages_of_nats_bus_are_logged_with_cause() {
    record();
    let nats = std::cell::RefCell::new(Nats::start());
    let address = nats.borrow_mut().server().address.to_string();
    let bus = NatsBus::connect(&nats.borrow().url()).unwrap();
    let stop = || nats.borrow_mut().server().kill();
    assert_bus_outages(&bus, &address, stop, || nats.borrow_mut().restart());
    assert!(TcpStream::connect(&address).is_ok());
}

#[test]
fn eviction_policy_that_loses_usage_is_logged() {
    record();
    for (policy, warned) in [("allkeys-lru", true), ("volatile-ttl", true), ("noeviction", false)] {
        let redis = Redis::with(&["--maxmemory", "100mb", "--maxmemory-policy", policy]);
        let address = redis.url().replace("redis://", "");
        let shared = Shared::builder(redis.url(), "account").connect().unwrap();
        let limiter = limiter(&shared, Quota::new().rpd(10));
        until("the store is available", || shared.status().connected);
        if warned {
            until("the policy is logged", || !lines(&address).is_empty());
        }
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        let logged = lines(&address);
        assert_eq!(logged.len(), usize::from(warned), "{policy}: {logged:#?}");
        assert!(logged.iter().all(|line| line.contains(policy) && line.contains("noeviction")));
    }
}

/// The rules of docs/cluster.md.
#[test]
fn user_with_documented_permissions_can_share_limits() {
    record();
    let page = include_str!("../../../docs/cluster.md");
    let rule =
        page.lines().map(str::trim).find(|line| line.starts_with("ACL SETUSER paceline ")).unwrap();
    let mut redis = Redis::start();
    let address = redis.server().address;
    assert!(send_command(address, rule).starts_with("+OK"), "{rule}");
    for mode in [SharingMode::Exact, SharingMode::Lease] {
        let url = format!("redis://paceline:PASSWORD@{address}");
        let shared = Shared::builder(&url, "account").on_failure(OnFailure::Closed).mode(mode);
        let shared = shared.timeout(Duration::from_secs(2)).connect().unwrap();
        let limiter = limiter(&shared, Quota::new().rpd(10).concurrency(5));
        until("the store is available", || shared.status().connected);
        limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
        limiter.reset("k");
        until("the end is acknowledged", || shared.status().unacknowledged == 0);
        assert_eq!(shared.status().outages, 0);
        let channels = || send_command(address, "PUBSUB CHANNELS paceline:wake:*");
        until("the process listens", || channels().contains("paceline:wake:"));
    }
    let bus = RedisBus::connect(&format!("redis://paceline:PASSWORD@{address}")).unwrap();
    let subscriber = std::sync::Arc::new(|_: &[u8]| std::ops::ControlFlow::Continue(()));
    bus.subscribe("ratelimit.capacity", subscriber);
    until("the bus is connected", || bus.status().connected);
    bus.publish("ratelimit.capacity", b"{}");
    until("the message is received", || bus.status().received == 1);
    let logged = lines(&address.to_string());
    assert!(logged.is_empty(), "{logged:#?}");
}

#[test]
fn repeated_outages_do_not_flood_the_log() {
    record();
    let begin = Instant::now();
    let mut redis = Redis::start();
    let address = redis.server().address.to_string();
    let shared = Shared::builder(redis.url(), "account").on_failure(OnFailure::Closed);
    let shared = shared.timeout(Duration::from_secs(2)).connect().unwrap();
    for outage in 1..=8 {
        until("the store is available", || shared.status().connected);
        redis.server().kill();
        until("the outage is noticed", || shared.status().outages == outage);
        redis.restart();
    }
    until("the store is available", || shared.status().connected);
    // Three in ten seconds, with a line at the start and one at the end.
    let intervals = usize::try_from(begin.elapsed().as_secs() / 10 + 1).unwrap();
    let logged = lines(&address);
    assert!((6..=6 * intervals).contains(&logged.len()), "{logged:#?}");
}

#[test]
fn loading_server_is_named_and_waited_for() {
    record();
    // Loads each key slowly, and answers after every 1,024 commands: several times per second.
    let slow = ["--appendonly", "yes", "--appendfsync", "always", "--key-load-delay", "20"];
    let mut redis = Redis::with(&slow);
    let address = redis.server().address;
    let shared = Shared::builder(redis.url(), "account").on_failure(OnFailure::Closed);
    let shared = shared.timeout(Duration::from_secs(2)).connect().unwrap();
    let limiter = limiter(&shared, Quota::new().rpd(2));
    limiter.try_acquire("k", &Cost::new()).unwrap().settle(&Cost::new());
    until("the end is reported", || shared.status().unacknowledged == 0);
    send_command(address, "EVAL \"for i=1,40000 do redis.call('SET',i,i) end\" 0");
    redis.server().kill();
    let cause = "the server is loading its data; wait until it has started";
    std::thread::scope(|scope| {
        // Until the data is loaded.
        scope.spawn(|| redis.restart());
        until("the cause is stated", || shared.outage_cause().as_deref() == Some(cause));
        assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    });
    until("the store is available", || shared.status().connected);
    assert_eq!(admitted(&limiter, 10).len(), 1, "of two");
}
