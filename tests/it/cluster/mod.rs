//! State across machines, against real servers.

mod servers;
