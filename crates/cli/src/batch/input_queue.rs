//! The input, read ahead by a thread.

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::ids::Ids;
use super::input::{ParsedLine, Reader};

/// The share of a line in the memory limit of all lines, held until the line is finished.
pub(super) type MemoryPermit = OwnedSemaphorePermit;

/// A queue of input lines with a memory limit.
#[derive(Debug)]
pub(super) struct InputQueue {
    entries: mpsc::UnboundedReceiver<(ParsedLine, MemoryPermit)>,
    memory: Arc<Semaphore>,
    ended: oneshot::Receiver<io::Result<Ids>>,
}

impl InputQueue {
    /// Starts reading, within a Tokio runtime. The queue holds up to `lines` short lines, at least
    /// 4,096.
    pub(super) fn start(reader: Reader<BufReader<File>>, lines: usize) -> Self {
        let permits = lines.clamp(LINES, Semaphore::MAX_PERMITS);
        let memory = Arc::new(Semaphore::new(permits));
        let (line_sender, entries) = mpsc::unbounded_channel();
        let (end_sender, ended) = oneshot::channel();
        let (runtime, semaphore) = (Handle::current(), Arc::clone(&memory));
        let most = u32::try_from(permits).unwrap_or(u32::MAX);
        std::thread::spawn(move || {
            let acquire = |parsed: &ParsedLine| {
                let permits = permits_of(parsed).min(most);
                runtime.block_on(Arc::clone(&semaphore).acquire_many_owned(permits)).ok()
            };
            let read = read(reader, &line_sender, acquire);
            // Sent before the channel closes, so that the receiver finds it after the last line.
            drop(end_sender.send(read));
            drop(line_sender);
        });
        Self { entries, memory, ended }
    }

    /// Returns the next line; `None` at the end of the input or after an I/O error.
    ///
    /// # Cancel safety
    /// No line is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Option<(ParsedLine, MemoryPermit)> {
        self.entries.recv().await
    }

    /// Returns all ids of the input, after its last line.
    ///
    /// # Errors
    /// The I/O error that ended the input early.
    pub(super) async fn ids(mut self) -> io::Result<Ids> {
        let panicked = || Err(io::Error::other("the reader thread panicked"));
        (&mut self.ended).await.unwrap_or_else(|_| panicked())
    }
}

impl Drop for InputQueue {
    /// Stops reading, without waiting for a pending read of a pipe.
    fn drop(&mut self) {
        self.memory.close();
    }
}

fn read(
    mut reader: Reader<BufReader<File>>,
    entries: &mpsc::UnboundedSender<(ParsedLine, MemoryPermit)>,
    acquire: impl Fn(&ParsedLine) -> Option<MemoryPermit>,
) -> io::Result<Ids> {
    for parsed in reader.by_ref() {
        let parsed = parsed?;
        let Some(permit) = acquire(&parsed) else { break };
        if entries.send((parsed, permit)).is_err() {
            break;
        }
    }
    Ok(reader.into_ids())
}

/// Returns the number of permits of a line: one, plus one for every 64 KiB of its body.
fn permits_of(parsed: &ParsedLine) -> u32 {
    let bytes = match parsed {
        ParsedLine::Request(line) => line.body.len(),
        ParsedLine::Invalid(_) => 0,
    };
    u32::try_from(1 + bytes / PERMIT_BYTES).unwrap_or(u32::MAX)
}

/// The maximum number of lines in memory, so that a model with low limits rarely blocks another
/// one. Their bodies take at most 256 MiB.
const LINES: usize = 4_096;
const PERMIT_BYTES: usize = 64 * 1_024;
