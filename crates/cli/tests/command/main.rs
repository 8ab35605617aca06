//! The command, as it is called and as it is made: real processes, real files, real HTTP.

mod batch;
mod cli;
mod docs;
mod explain;
mod parity;
mod serve;
mod shared_limits;
