use std::io::{self, IsTerminal};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use tollgate_serve::{Log, LogFormat, LogLevel};

/// Starts logging to standard error. Dependencies log only warnings, since their connection logs
/// contain headers. The limiter's events contain keys and are not logged; the status page and the
/// metrics show them to authorized users.
pub(super) fn start(log: Log) {
    let level = match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let others = level.min(LevelFilter::WARN);
    let filter = Targets::new()
        .with_default(others)
        .with_target("tollgate", level)
        .with_target("tollgate::limiter", LevelFilter::OFF);
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours);
    let registry = tracing_subscriber::registry().with(filter);
    // Fails if another logger is installed in this process, which then stays.
    let _ = match log.format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Text => registry.with(lines).try_init(),
    };
}
