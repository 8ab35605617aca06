use super::send_log::SentRequest;
use crate::timestamp::Timestamp;

/// The last event: a refusal of a request that was sent after the last reaction, and those that belong to it.
#[derive(Debug, Default)]
pub(super) struct LastEvent {
    /// The time of the last reaction: refusals of requests sent before belong to the same event.
    pub(super) reacted: Option<Timestamp>,
    /// The number of the request whose refusal was measured last.
    pub(super) number: Option<u64>,
    /// Requests refused or returned since.
    pub(super) refusals: u64,
    /// Refusals of the event.
    pub(super) flight: u32,
}

impl LastEvent {
    /// Returns whether every request between the last event and this one was refused: the provider has been
    /// closed all the time.
    pub(super) fn accepted_nothing_before(&self, sent: &SentRequest) -> bool {
        self.number
            .is_some_and(|last| sent.number.saturating_sub(1).saturating_sub(last) <= self.refusals)
    }
}
