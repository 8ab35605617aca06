//! State across machines, against real servers.
#![expect(clippy::disallowed_methods, reason = "real servers take real time, up to a limit")]

mod bus;
mod bus_local;
mod bus_servers;
mod cluster_servers;
mod config;
mod failure;
mod fleet;
mod lease;
mod lease_processes;
mod machines;
mod outage;
mod proxy;
mod redis_cluster;
mod shared;
mod tls;

use std::net::TcpStream;

use tollgate_testing::servers::{Nats, Redis};

#[test]
fn a_server_is_started_killed_and_started_again() {
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
