use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

/// Standard output. A closed pipe, as by `head`, is not an error.
pub(super) struct Stdout<'o> {
    out: &'o mut dyn Write,
    closed: bool,
}

impl<'o> Stdout<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, closed: false }
    }

    /// Writes a line and flushes.
    ///
    /// # Errors
    /// Returns an I/O error, such as a full disk.
    pub(super) fn line(&mut self, text: &dyn Display) -> Result<(), String> {
        self.write(&format_args!("{text}\n"))
    }

    /// Writes a value as one line of JSON.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), String> {
        let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
        self.line(&text)
    }

    /// Writes a text and flushes.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub(super) fn write(&mut self, text: &dyn Display) -> Result<(), String> {
        if self.closed {
            return Ok(());
        }
        match write!(self.out, "{text}").and_then(|()| self.out.flush()) {
            Err(error) if is_closed(&error) => self.closed = true,
            Err(error) => return Err(format!("standard output: cannot write: {error}")),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Returns true if the pipe is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}

fn is_closed(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn closed_pipe_stops_writing_and_full_disk_is_error() {
        let mut closed = Failing(ErrorKind::BrokenPipe);
        let mut output = Stdout::new(&mut closed);
        assert_eq!((output.line(&"a"), output.is_closed()), (Ok(()), true));
        let mut full = Failing(ErrorKind::StorageFull);
        assert!(
            Stdout::new(&mut full)
                .json(&1)
                .is_err_and(|why| why.starts_with("standard output: cannot write"))
        );
    }
}
