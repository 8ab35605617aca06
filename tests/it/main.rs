//! One integration binary: each room of the house has a folder here.

mod arrows;
#[cfg(feature = "cli")]
mod cluster;
#[cfg(feature = "yaml")]
mod config;
mod engine;
mod limiter;
#[cfg(feature = "tower")]
mod middleware;
#[cfg(feature = "tower")]
mod parity;
#[cfg(any(feature = "yaml", feature = "sqlite"))]
mod process;
mod provider;

#[cfg(feature = "simulate")]
mod replay;
#[cfg(feature = "cli")]
mod sdk;
#[cfg(feature = "simulate")]
mod simulate;
#[cfg(all(feature = "metrics", feature = "tower"))]
mod telemetry;

#[cfg(feature = "cli")]
mod batch;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod explain;
#[cfg(feature = "cli")]
mod serve;

#[cfg(any(feature = "yaml", feature = "sqlite"))]
mod store;
