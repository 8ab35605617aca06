//! The server over real sockets, in the test's own process where time is driven by hand, and as a process
//! that is watched from outside.

mod api;
mod auth;
#[cfg(unix)]
mod command;
mod compressed;
mod example;
mod forwarded;
mod gocc;
mod gocc_load;
mod gocc_mends;
mod gocc_shared;
mod live;
pub(crate) mod process;
mod proxy;
pub(crate) mod rig;
mod robustness;
mod server;
#[cfg(unix)]
mod signals;
mod soak;
mod wire;
