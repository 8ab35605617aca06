//! The library's integration tests in one binary, with a folder per module.

#[cfg(target_os = "linux")]
mod dependencies;
mod import_circles;
mod limiter;
mod middleware;
mod module_imports;
mod parity;
mod pure;
mod replay;
#[cfg(feature = "metrics")]
mod telemetry;
mod wrong_limits;

/// Runs a future in a runtime of its own, whose time is paused.
fn block_on_paused<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}
