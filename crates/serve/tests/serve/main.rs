//! The server over real sockets, in the test's own process, where time is driven by hand.

mod api;
mod auth;
mod compressed;
mod config;
mod example;
mod forwarded;
mod gocc;
mod gocc_load;
mod gocc_mends;
mod gocc_shared;
mod live;
mod parity;
mod proxy;
pub(crate) mod rig;
mod sdk;
mod server;
