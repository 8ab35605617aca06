//! The input, read ahead on a thread of its own.

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::ids::Ids;
use super::input::{Entry, Reader};

/// A line's part of the memory that all lines may take: to be held until it is done with.
pub(super) type Room = OwnedSemaphorePermit;

/// Lines on their way out of the input: as many as there is room for, however long they wait.
#[derive(Debug)]
pub(super) struct Intake {
    entries: mpsc::UnboundedReceiver<(Entry, Room)>,
    room: Arc<Semaphore>,
    ended: oneshot::Receiver<io::Result<Ids>>,
}

impl Intake {
    /// Begins to read, within a Tokio runtime; `lines` short ones have room at a time, or 4,096 if
    /// that is more.
    pub(super) fn start(reader: Reader<BufReader<File>>, lines: usize) -> Self {
        let places = lines.clamp(LINES, Semaphore::MAX_PERMITS);
        let room = Arc::new(Semaphore::new(places));
        let (give, entries) = mpsc::unbounded_channel();
        let (tell, ended) = oneshot::channel();
        let (runtime, own) = (Handle::current(), Arc::clone(&room));
        let most = u32::try_from(places).unwrap_or(u32::MAX);
        std::thread::spawn(move || {
            let take = |entry: &Entry| {
                let places = places_of(entry).min(most);
                runtime.block_on(Arc::clone(&own).acquire_many_owned(places)).ok()
            };
            let read = read(reader, &give, take);
            // Told before the last sender goes: whoever sees the end of the lines finds it.
            drop(tell.send(read));
            drop(give);
        });
        Self { entries, room, ended }
    }

    /// The next line; `None` at the end of the input, or where it can't be read on.
    ///
    /// # Cancel safety
    /// Dropped, it has taken nothing.
    pub(super) async fn next(&mut self) -> Option<(Entry, Room)> {
        self.entries.recv().await
    }

    /// Every id of the input, once its lines have ended.
    ///
    /// # Errors
    /// Why the input could not be read to its end.
    pub(super) async fn ids(mut self) -> io::Result<Ids> {
        let died = || Err(io::Error::other("the reader thread panicked"));
        (&mut self.ended).await.unwrap_or_else(|_| died())
    }
}

impl Drop for Intake {
    /// Reads no further. A read of a pipe in which nothing comes is not waited for.
    fn drop(&mut self) {
        self.room.close();
    }
}

fn read(
    mut reader: Reader<BufReader<File>>,
    entries: &mpsc::UnboundedSender<(Entry, Room)>,
    take: impl Fn(&Entry) -> Option<Room>,
) -> io::Result<Ids> {
    for entry in reader.by_ref() {
        let entry = entry?;
        let Some(room) = take(&entry) else { break };
        if entries.send((entry, room)).is_err() {
            break;
        }
    }
    Ok(reader.into_ids())
}

/// One for each line, and one more for every 64 KiB of its body.
fn places_of(entry: &Entry) -> u32 {
    let bytes = match entry {
        Entry::Request(line) => line.body.len(),
        Entry::Bad(_) => 0,
    };
    u32::try_from(1 + bytes / PLACE).unwrap_or(u32::MAX)
}

/// Lines in memory at a time, waiting or in flight: enough that a model whose limits are short
/// seldom holds up another one. Their bodies take at most 256 MiB.
const LINES: usize = 4_096;
const PLACE: usize = 64 * 1_024;
