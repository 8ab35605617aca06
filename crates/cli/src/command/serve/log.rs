use std::io::{self, IsTerminal};
use std::panic;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::log_queue::LogQueue;
use crate::terminal::printable_lines;
use paceline_serve::{Log, LogFormat, LogLevel};

/// The log, which is written for a short time longer when this is dropped.
pub(super) struct LogWriter(LogQueue);

impl LogWriter {
    /// Writes a notice without the format of the log.
    pub(super) fn notify(&self, text: &str) {
        self.0.push(format!("paceline: {}\n", printable_lines(text)).as_bytes());
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Starts logging to standard error, which never blocks the server: panics are logged, too, since their
/// default report would wait until standard error is read. Dependencies log only warnings, since their connection logs
/// contain headers. The limiter's events contain keys and are not logged; the status page and the metrics show them to
/// authorized users. Long waits (`paceline::waits`) and refusals that stop a key (`paceline::refusals`) are logged with the
/// name of its quota.
///
/// # Errors
/// Returns an error if the system can't start the thread that writes the log.
pub(super) fn start(log: Log) -> io::Result<LogWriter> {
    let level = match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let others = level.min(LevelFilter::WARN);
    let filter = Targets::new()
        .with_default(others)
        .with_target("paceline", level)
        .with_target("paceline::limiter", LevelFilter::OFF)
        // The spans of requests have the key too.
        .with_target("paceline::request", LevelFilter::OFF);
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let queue = LogQueue::start(unlocked_stderr()?, report_dropped)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(queue.clone()).with_ansi(colours);
    let registry = tracing_subscriber::registry().with(filter);
    // Fails if another logger is installed in this process, which then stays.
    let _ = match log.format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Text => registry.with(lines).try_init(),
    };
    panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a thread panicked")));
    Ok(LogWriter(queue))
}

fn report_dropped(lines: usize) {
    tracing::error!(
        lines,
        "log lines were dropped, because standard error did not accept them in time"
    );
}

/// Returns standard error without the lock of the standard library, which a stalled write would hold.
#[cfg(unix)]
fn unlocked_stderr() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stderr().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature on all systems")]
fn unlocked_stderr() -> io::Result<io::Stderr> {
    Ok(io::stderr())
}
