//! State across restarts and machines, with real files and servers.

mod cluster;
mod parity;
