use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// Log lines on their way to an output that may block, such as a pipe whose reader has stopped.
///
/// Writing to the queue never waits for the output, which a thread writes to. Lines that the queue has
/// no room for, or that the output rejects, are dropped, and their number is reported as soon as the
/// output accepts lines again.
#[derive(Debug, Clone)]
pub(super) struct LogQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Notified when there are new lines.
    filled: Condvar,
    /// Notified when all lines have been written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Complete lines.
    lines: Vec<u8>,
    dropped: usize,
    /// True while the thread writes lines that it has taken.
    is_writing: bool,
}

impl LogQueue {
    /// Starts the thread that writes to `output`, and calls `report` with the number of dropped lines. It
    /// ends with the process.
    ///
    /// # Errors
    /// Returns an error if the system can't start a thread.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        report: impl Fn(usize) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Self(Arc::default());
        let shared = Arc::clone(&queue.0);
        let thread = thread::Builder::new().name("paceline-log".to_owned());
        thread.spawn(move || shared.write_to(output, report))?;
        Ok(queue)
    }

    /// Adds lines, or drops them if the queue is full.
    pub(super) fn push(&self, lines: &[u8]) {
        let mut queue = self.0.queue.lock();
        if queue.lines.len() + lines.len() > CAPACITY {
            queue.dropped += count_lines(lines);
            return;
        }
        queue.lines.extend_from_slice(lines);
        drop(queue);
        self.0.filled.notify_one();
    }

    /// Waits until all lines are written, for a short time only, since the output may never accept them.
    pub(super) fn flush(&self) {
        let is_unwritten = |queue: &mut Queue| !queue.lines.is_empty() || queue.is_writing;
        self.0.emptied.wait_while_for(&mut self.0.queue.lock(), is_unwritten, FLUSH);
    }
}

impl Shared {
    fn write_to(&self, mut output: impl Write, report: impl Fn(usize)) {
        loop {
            let (lines, dropped) = self.take();
            let rejected = write(&mut output, &lines);
            match rejected {
                0 if dropped > 0 => report(dropped),
                0 => {}
                _ => self.queue.lock().dropped += dropped + rejected,
            }
            let mut queue = self.queue.lock();
            queue.is_writing = false;
            if queue.lines.is_empty() {
                self.emptied.notify_all();
            }
        }
    }

    /// Waits for lines. Returns them and the number of lines that were dropped after them.
    fn take(&self) -> (Vec<u8>, usize) {
        let mut queue = self.queue.lock();
        while queue.lines.is_empty() {
            self.filled.wait(&mut queue);
        }
        queue.is_writing = true;
        (std::mem::take(&mut queue.lines), std::mem::take(&mut queue.dropped))
    }
}

/// Writes lines, and returns the number of those that the output rejected.
fn write(output: &mut impl Write, mut lines: &[u8]) -> usize {
    while !lines.is_empty() {
        match output.write(lines) {
            Ok(0) => break,
            Ok(written) => lines = &lines[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    count_lines(lines)
}

fn count_lines(lines: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', lines).count()
}

impl Write for &LogQueue {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.push(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The maximum length of the waiting lines in bytes; several thousand lines.
const CAPACITY: usize = 1 << 20;

/// The longest time that the end of the server waits for the log.
const FLUSH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that waits before each write until the test lets it go on.
    struct GatedOutput {
        started: Sender<()>,
        gate: Receiver<io::Result<()>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for GatedOutput {
        fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
            let _ = self.started.send(());
            self.gate.recv().unwrap_or(Ok(()))?;
            self.written.lock().extend_from_slice(lines);
            Ok(lines.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn stalled_output_drops_and_counts_lines_without_blocking() {
        let ((started, starts), (gate, gated)) = (channel(), channel());
        let (written, (reported, reports)) = (Arc::default(), channel());
        let output = GatedOutput { started, gate: gated, written: Arc::clone(&written) };
        let queue = LogQueue::start(output, move |lines| reported.send(lines).unwrap()).unwrap();
        queue.push(b"first\n");
        starts.recv().unwrap();
        // The thread is blocked in the write of the first line.
        let line = [&[b'x'; 1_023][..], b"\n"].concat();
        for _ in 0..1_024 + 7 {
            queue.push(&line);
        }
        assert_eq!(queue.0.queue.lock().dropped, 7);

        // Lines that the output rejects are counted too.
        let full = || Err(io::ErrorKind::StorageFull.into());
        gate.send(full()).unwrap();
        starts.recv().unwrap();
        gate.send(full()).unwrap();
        queue.push(b"last\n");
        starts.recv().unwrap();
        drop(gate);
        queue.flush();
        assert_eq!(*written.lock(), b"last\n");
        assert_eq!(reports.try_iter().collect::<Vec<_>>(), [7 + 1 + 1_024]);
    }
}
