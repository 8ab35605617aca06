use std::sync::Arc;

use super::core::Core;
use crate::backend::Reservation;
use crate::sync::atomic::Ordering;

/// The right to ask the backend beside the first request of a queue. The backend bounds their number.
pub(super) struct AskSlot(Arc<Core>);

impl AskSlot {
    /// Takes a slot for a request of this reservation; `None` if all are taken.
    pub(super) fn take(core: &Arc<Core>, reservation: &Reservation) -> Option<Self> {
        let most = core.backend.as_ref()?.max_ahead(reservation);
        let more = |taken| (taken < most).then_some(taken + 1);
        let taken = core.asking.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self(Arc::clone(core)))
    }
}

impl Drop for AskSlot {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
    }
}
