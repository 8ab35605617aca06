//! A log of the replies.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use super::reply::SimulatedReply;

/// A log with one JSON line per reply.
pub(super) struct ReplyLog(Mutex<Output>);

struct Output {
    writer: Box<dyn Write + Send>,
    /// The first error, after which the log ends.
    error: Option<io::Error>,
}

impl ReplyLog {
    pub(super) fn new(writer: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(Output { writer, error: None }))
    }

    /// Writes a reply to a request at a time since the first request.
    pub(super) fn write(&self, elapsed: Duration, reply: &SimulatedReply) {
        let line = json!({
            "at": elapsed.as_secs_f64(),
            "latency": reply.latency.as_secs_f64(),
            "status": reply.status,
            "tokens": reply.charged,
            "micro_usd": reply.spent,
        });
        let mut output = self.0.lock();
        if output.error.is_none()
            && let Err(error) = writeln!(output.writer, "{line}")
        {
            output.error = Some(error);
        }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// Returns the first I/O error of the log.
    pub(super) fn finish(&self) -> io::Result<()> {
        let mut output = self.0.lock();
        match output.error.take() {
            Some(error) => Err(error),
            None => output.writer.flush(),
        }
    }
}

impl fmt::Debug for ReplyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReplyLog").finish_non_exhaustive()
    }
}
