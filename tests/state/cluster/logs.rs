//! The log of this process. Several tests share it, so each reads the lines about its own server.

use std::sync::OnceLock;

use paceline_testing::log_buffer::LogBuffer;
use tracing_subscriber::filter::LevelFilter;

/// Starts recording, unless another test has.
pub(super) fn record() -> &'static LogBuffer {
    static LOG: OnceLock<LogBuffer> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = LogBuffer::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(LevelFilter::INFO)
            .with_writer(move || writer.clone());
        tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
        log
    })
}

/// Returns the lines that contain `text`.
pub(super) fn lines(text: &str) -> Vec<String> {
    let all = record().text();
    all.lines().filter(|line| line.contains(text)).map(ToOwned::to_owned).collect()
}
