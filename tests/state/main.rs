//! State across restarts and across machines: real files, real servers.

mod cluster;
mod kept;
mod parity;
mod store;
