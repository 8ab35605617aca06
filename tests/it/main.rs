//! The library's integration tests in one binary, with a folder per module.

#[cfg(feature = "yaml")]
mod config;
#[cfg(target_os = "linux")]
mod dependencies;
#[cfg(feature = "zones")]
mod engine;
mod limiter;
#[cfg(feature = "tower")]
mod middleware;
mod module_imports;
#[cfg(feature = "tower")]
mod parity;

mod replay;
mod shared_protocol;
#[cfg(all(feature = "metrics", feature = "tower"))]
mod telemetry;
#[cfg(feature = "tower")]
mod wrong_limits;

/// Runs a future in a runtime of its own, whose time is paused.
fn block_on_paused<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}
