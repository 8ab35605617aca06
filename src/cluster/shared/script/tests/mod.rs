mod clock;
mod expiry;
mod leases;
mod lost;
mod once;
mod random;
mod same;
mod scene;
mod server;
#[path = "../../../../../tests/it/cluster/servers.rs"]
#[allow(dead_code, reason = "the tests of real servers use all of it")]
mod servers;
mod tickets;
mod unreadable;
mod world;
