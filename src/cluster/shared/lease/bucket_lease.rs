use super::demand::Demand;

/// What a lease has of one rule's bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct BucketLease {
    /// What is held for us on the server, as far as we may rely on it.
    pub(super) granted: u64,
    /// What the server said last that it holds.
    pub(super) confirmed: u64,
    /// Reserved by requests in flight.
    pub(super) in_flight: u64,
    /// Used, and not told.
    pub(super) unreported: u64,
    /// Used, told, and not known to be heard.
    pub(super) reporting: u64,
    /// What was free when the server had answered last.
    pub(super) free_at_renewal: u64,
    pub(super) demand: Demand,
}

impl BucketLease {
    /// What can be taken.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        let gone = self.in_flight.saturating_add(self.unreported).saturating_add(self.reporting);
        self.granted.saturating_sub(gone)
    }

    /// What must stay held whatever happens: in flight, or used and not told.
    pub(super) fn committed(&self) -> u64 {
        self.in_flight.saturating_add(self.unreported)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.granted == 0 && self.committed() == 0 && self.reporting == 0
    }

    /// What stays held besides what is being told: all, or only what must.
    pub(super) fn keep(&mut self, all: bool) -> u64 {
        let kept = self.committed().saturating_add(if all { self.free() } else { 0 });
        self.granted = self.reporting.saturating_add(kept);
        // It may have heard the question, though we don't hear its answer.
        self.confirmed = self.confirmed.min(self.granted);
        kept
    }

    /// What was told was heard, and so much more is held.
    pub(super) fn acknowledge(&mut self, granted: u64) {
        self.granted = self.granted.saturating_sub(self.reporting).saturating_add(granted);
        self.reporting = 0;
        self.confirmed = self.granted;
        self.free_at_renewal = self.free();
    }

    /// The server holds nothing any more, and has taken what it held: only what was used beyond that
    /// is still to be told. What is in flight was taken with the rest.
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
    fn use_beyond_the_kept_amount_is_reported_after_lapse() {
        let mut row =
            BucketLease { granted: 10, confirmed: 10, in_flight: 2, ..BucketLease::default() };
        assert_eq!(row.keep(false), 2);
        // The answer was lost; the server holds 2 now, which took 7, and then lapse as used.
        (row.in_flight, row.unreported) = (0, 7);
        row.expire();
        assert_eq!(row.unreported, 5);
    }
}
