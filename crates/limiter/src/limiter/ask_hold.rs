use std::sync::Arc;
use std::task::Wake;

use super::ask_slot::AskSlot;
use super::core::Core;
use crate::backend::{Ending, Reservation};
use crate::sync::Mutex;

/// What a request that asks a backend holds there: its reservation and, until there is an answer, its slot.
///
/// It is also a waker, which is called if the request isn't polled and others pass it: it gives both back.
pub(super) struct AskHold {
    core: Arc<Core>,
    /// `None` once they were given back.
    held: Mutex<Option<Held>>,
}

struct Held {
    reservation: Arc<Reservation>,
    slot: Option<AskSlot>,
}

impl AskHold {
    pub(super) fn new(
        core: &Arc<Core>,
        reservation: Arc<Reservation>,
        slot: Option<AskSlot>,
    ) -> Arc<Self> {
        let held = Mutex::new(Some(Held { reservation, slot }));
        Arc::new(Self { core: Arc::clone(core), held })
    }

    /// Returns whether the reservation was given back.
    pub(super) fn is_given_back(&self) -> bool {
        self.held.lock().is_none()
    }

    /// Returns the slot, after the answer.
    pub(super) fn return_slot(&self) {
        let slot = self.held.lock().as_mut().and_then(|held| held.slot.take());
        drop(slot);
    }

    /// Gives back the reservation and the slot, unless that was done before.
    pub(super) fn give_back(&self) {
        let held = self.held.lock().take();
        if let (Some(held), Some(backend)) = (held, &self.core.backend) {
            backend.end(&held.reservation, Ending::Released);
        }
    }
}

impl Wake for AskHold {
    fn wake(self: Arc<Self>) {
        self.give_back();
    }
}
