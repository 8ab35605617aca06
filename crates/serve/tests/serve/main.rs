//! The server over real sockets, in the test's process and with a manual clock.

mod api;
mod attacks;
mod auth;
mod compression;
mod config;
mod example;
mod forwarded;
mod gocc;
mod gocc_fixes;
mod gocc_load;
mod gocc_shared;
mod live;
mod parity;
mod proxy;
pub(crate) mod rig;
mod sdk;
mod server;
mod shared_knowledge;
