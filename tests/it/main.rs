//! One integration binary: each room of the house has a folder here.

mod arrows;
#[cfg(feature = "yaml")]
mod config;
#[cfg(target_os = "linux")]
mod dependencies;
#[cfg(feature = "zones")]
mod engine;
mod limiter;
#[cfg(feature = "tower")]
mod middleware;
#[cfg(feature = "tower")]
mod parity;
mod provider;

mod replay;
#[cfg(all(feature = "metrics", feature = "tower"))]
mod telemetry;
