use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots for requests of one layer that wait after their call.
#[derive(Debug)]
pub(super) struct QueueSlots(Arc<Semaphore>);

/// The slot of a waiting request. Dropping it wakes the first service that waits for one.
pub(super) type QueueSlot = OwnedSemaphorePermit;

/// The slot that a service keeps for its next request. It takes one only if it had to wait for it.
#[derive(Default)]
pub(super) enum ReservedSlot {
    #[default]
    None,
    Awaited(Pin<Box<dyn Future<Output = QueueSlot> + Send + Sync>>),
    Taken(QueueSlot),
}

impl QueueSlots {
    pub(super) fn new(slots: usize) -> Self {
        Self(Arc::new(Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Polls until a slot is free.
    #[inline]
    pub(super) fn poll_free(&self, reserved: &mut ReservedSlot, cx: &mut Context<'_>) -> Poll<()> {
        match reserved {
            ReservedSlot::None if self.0.available_permits() > 0 => Poll::Ready(()),
            _ => self.poll_taken(reserved, cx),
        }
    }

    fn poll_taken(&self, reserved: &mut ReservedSlot, cx: &mut Context<'_>) -> Poll<()> {
        if let ReservedSlot::None = reserved {
            let slots = Arc::clone(&self.0);
            let slot = async { slots.acquire_owned().await.expect("the slots are never closed") };
            *reserved = ReservedSlot::Awaited(Box::pin(slot));
        }
        if let ReservedSlot::Awaited(slot) = reserved {
            *reserved = ReservedSlot::Taken(ready!(slot.as_mut().poll(cx)));
        }
        Poll::Ready(())
    }

    /// Takes the slot of a request that waits: the one that its service keeps, or else a free one. A service
    /// may have been ready when the last slot was taken; its request waits without one.
    pub(super) fn take(&self, reserved: ReservedSlot) -> Option<QueueSlot> {
        match reserved {
            ReservedSlot::Taken(slot) => Some(slot),
            _ => Arc::clone(&self.0).try_acquire_owned().ok(),
        }
    }
}
