//! Tests of `paceline serve` as a process.

mod account_limits;
#[cfg(unix)]
mod command;
mod http2;
mod https;
mod logged_stops;
pub(crate) mod process;
mod robustness;
#[cfg(unix)]
mod signals;
mod soak;
#[cfg(unix)]
mod stalled_log;
#[cfg(unix)]
mod stopping;
mod tls;
mod versions;
