use super::demand::Demand;

/// The lease of one rule's bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct BucketLease {
    /// The amount that this process may assume to be held on the server.
    pub(super) granted: u64,
    /// The amount held according to the server's last response.
    pub(super) confirmed: u64,
    /// The amount reserved by requests in flight.
    pub(super) in_flight: u64,
    /// The usage that is not reported yet.
    pub(super) unreported: u64,
    /// The usage that is reported, without a response yet.
    pub(super) reporting: u64,
    /// The free amount after the server's last response.
    pub(super) free_at_renewal: u64,
    pub(super) demand: Demand,
}

impl BucketLease {
    /// Returns the amount that can be taken.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        let unavailable =
            self.in_flight.saturating_add(self.unreported).saturating_add(self.reporting);
        self.granted.saturating_sub(unavailable)
    }

    /// Returns the amount that must stay held: in flight, or used and not reported.
    pub(super) fn committed(&self) -> u64 {
        self.in_flight.saturating_add(self.unreported)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.granted == 0 && self.committed() == 0 && self.reporting == 0
    }

    /// Keeps either all amounts or only the committed ones, in addition to the usage being reported.
    /// Returns the kept amount.
    pub(super) fn keep(&mut self, all: bool) -> u64 {
        let kept = self.committed().saturating_add(if all { self.free() } else { 0 });
        self.granted = self.reporting.saturating_add(kept);
        // The server may have executed the call even if its response is lost.
        self.confirmed = self.confirmed.min(self.granted);
        kept
    }

    /// Handles a response: the server has received the report, and holds `granted` in addition.
    pub(super) fn acknowledge(&mut self, granted: u64) {
        self.granted = self.granted.saturating_sub(self.reporting).saturating_add(granted);
        self.reporting = 0;
        self.confirmed = self.granted;
        self.free_at_renewal = self.free();
    }

    /// Handles the loss of the lease: the server has charged the held amount, including that of
    /// requests in flight, so only usage beyond it remains to be reported.
    pub(super) fn expire(&mut self) {
        let used = self.committed().saturating_add(self.reporting);
        self.unreported = used.saturating_sub(self.confirmed);
        (self.granted, self.confirmed, self.in_flight, self.reporting, self.free_at_renewal) =
            (0, 0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_beyond_the_kept_amount_is_reported_after_expiry() {
        let mut lease =
            BucketLease { granted: 10, confirmed: 10, in_flight: 2, ..BucketLease::default() };
        assert_eq!(lease.keep(false), 2);
        // The response was lost. The server held 2, and 7 were used before the lease expired.
        (lease.in_flight, lease.unreported) = (0, 7);
        lease.expire();
        assert_eq!(lease.unreported, 5);
    }
}
