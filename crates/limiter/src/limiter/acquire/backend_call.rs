use std::sync::Arc;

use crate::backend::{ReserveError, Reserving};
use crate::limiter::ask_hold::AskHold;
use crate::limiter::queued_request::QueuedRequest;
use crate::timestamp::Timestamp;

/// A request that has left its queue, whose reservation a backend decides about.
pub(super) struct BackendCall {
    pub(super) queued: Box<QueuedRequest>,
    pub(super) reserving: Reserving,
    pub(super) answer: Option<Result<(), ReserveError>>,
    pub(super) hold: Arc<AskHold>,
    /// The time at which the answer is due.
    pub(super) until: Timestamp,
}

impl BackendCall {
    /// Cancels the call and leaves the queue.
    pub(super) fn cancel(self) {
        let Self { mut queued, reserving, hold, .. } = self;
        drop(reserving);
        hold.give_back();
        queued.leave();
    }
}
