//! Tests of the command and its library with real processes, files and HTTP.

mod batch;
mod cli;
mod docs;
mod explain;
mod parity;
mod serve;
mod shared_limits;
