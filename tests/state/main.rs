//! State across restarts and across machines: real files, real servers.

mod cluster;
mod parity;
mod store;
