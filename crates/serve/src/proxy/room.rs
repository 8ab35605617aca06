use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::Error;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The bytes of request bodies that are held at a time.
///
/// Nobody waits for room: who holds some may wait for long.
#[derive(Debug)]
pub(super) struct Room {
    free: AtomicUsize,
}

impl Room {
    pub(super) fn of(bytes: usize) -> Arc<Self> {
        Arc::new(Self { free: AtomicUsize::new(bytes) })
    }

    fn has(&self, bytes: u64) -> bool {
        let free = self.free.load(Ordering::Relaxed);
        u64::try_from(free).unwrap_or(u64::MAX) >= bytes
    }

    fn take(&self, bytes: usize) -> bool {
        let rest = |free: usize| free.checked_sub(bytes);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// What one body takes of the room; given back with it.
#[derive(Debug)]
pub(super) struct Taken {
    room: Arc<Room>,
    bytes: AtomicUsize,
}

impl Taken {
    pub(super) fn none(room: &Arc<Room>) -> Arc<Self> {
        Arc::new(Self { room: Arc::clone(room), bytes: AtomicUsize::new(0) })
    }

    fn more(&self, bytes: usize) -> bool {
        let is_room = self.room.take(bytes);
        if is_room {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_room
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.free.fetch_add(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// A body that takes room as it comes, and fails with [`NoRoom`] where there is none: before its first
/// byte, if it says how long it is.
pub(super) struct Taking {
    body: Body,
    taken: Arc<Taken>,
}

impl Taking {
    pub(super) fn new(body: Body, taken: &Arc<Taken>) -> Self {
        Self { body, taken: Arc::clone(taken) }
    }
}

impl http_body::Body for Taking {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if !self.taken.room.has(self.body.size_hint().lower()) {
            return Poll::Ready(Some(Err(Error::new(NoRoom))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if !self.taken.more(bytes) {
                return Poll::Ready(Some(Err(Error::new(NoRoom))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// As many bytes are held as may be.
#[derive(Debug)]
pub(super) struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room is left for the bodies of requests")
    }
}

impl std::error::Error for NoRoom {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_has_taken_comes_back_with_its_last_holder() {
        let room = Room::of(10);
        let (one, other) = (Taken::none(&room), Taken::none(&room));
        assert!(one.more(4) && one.more(3) && other.more(3));
        assert!(!other.more(1) && !room.has(1));
        let held = Arc::clone(&one);
        drop(one);
        assert!(!room.has(1));
        drop(held);
        assert!(room.has(7) && !room.has(8));
    }
}
