//! State across machines, against real servers.
#![expect(clippy::disallowed_methods, reason = "real servers take real time, up to a limit")]

mod big_request;
mod budgets;
mod bus_local;
mod bus_servers;
mod causes;
mod clock;
mod distance;
mod failure;
mod faults;
mod fleet;
mod gates;
mod held_proxy;
mod knowledge;
mod lease;
mod lease_processes;
mod logs;
mod lost_data;
mod network_namespaces;
mod order;
mod outage;
mod proxy;
mod redis_cluster;
mod redis_cluster_server;
mod shared;
mod swarm;
mod tickets;
mod tls;
mod wakes;

use std::net::TcpStream;

use paceline_testing::servers::{Nats, Redis};

#[test]
fn test_servers_start_stop_and_restart() {
    let mut redis = Redis::start();
    redis.server().freeze();
    redis.server().thaw();
    redis.server().kill();
    assert!(TcpStream::connect(redis.server().address).is_err());
    redis.restart();
    let mut nats = Nats::start();
    nats.server().kill();
    nats.restart();
    assert_ne!(redis.url(), nats.url());
}
