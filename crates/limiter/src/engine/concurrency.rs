use super::Wait;

/// Requests in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) limit: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    in_flight: u64,
}

impl State {
    pub(super) fn check(&self, spec: &Spec) -> Result<(), Wait> {
        if self.in_flight < spec.limit { Ok(()) } else { Err(Wait::Unknown) }
    }

    pub(super) fn enter(&mut self, requests: u64) {
        self.in_flight = self.in_flight.saturating_add(requests);
    }

    pub(super) fn leave(&mut self, requests: u64) {
        self.in_flight = self.in_flight.saturating_sub(requests);
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }
}
