use super::demand::Demand;

/// What a lease has of one rule's bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    /// What is held for us on the server, as far as we may rely on it.
    pub(super) granted: u64,
    /// What the server said last that it holds.
    pub(super) confirmed: u64,
    /// Reserved by requests in flight.
    pub(super) flying: u64,
    /// Used, and not told.
    pub(super) spent: u64,
    /// Used, told, and not known to be heard.
    pub(super) telling: u64,
    /// What was free when the server had answered last.
    pub(super) base: u64,
    pub(super) demand: Demand,
}

impl Row {
    /// What can be taken.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        let gone = self.flying.saturating_add(self.spent).saturating_add(self.telling);
        self.granted.saturating_sub(gone)
    }

    /// What must stay held whatever happens: in flight, or used and not told.
    pub(super) fn bound(&self) -> u64 {
        self.flying.saturating_add(self.spent)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.granted == 0 && self.bound() == 0 && self.telling == 0
    }

    /// What stays held besides what is being told: all, or only what must.
    pub(super) fn keep(&mut self, all: bool) -> u64 {
        let kept = self.bound().saturating_add(if all { self.free() } else { 0 });
        self.granted = self.telling.saturating_add(kept);
        // It may have heard the question, though we don't hear its answer.
        self.confirmed = self.confirmed.min(self.granted);
        kept
    }

    /// What was told was heard, and so much more is held.
    pub(super) fn hear(&mut self, granted: u64) {
        self.granted = self.granted.saturating_sub(self.telling).saturating_add(granted);
        self.telling = 0;
        self.confirmed = self.granted;
        self.base = self.free();
    }

    /// The server holds nothing any more, and has taken what it held: only what was used beyond that
    /// is still to be told. What is in flight was taken with the rest.
    pub(super) fn lapse(&mut self) {
        let used = self.bound().saturating_add(self.telling);
        self.spent = used.saturating_sub(self.confirmed);
        (self.granted, self.confirmed, self.flying, self.telling, self.base) = (0, 0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_beyond_what_was_kept_is_told_though_the_question_went_unheard() {
        let mut row = Row { granted: 10, confirmed: 10, flying: 2, ..Row::default() };
        assert_eq!(row.keep(false), 2);
        // The answer was lost; the server holds 2 now, which took 7, and then lapse as used.
        (row.flying, row.spent) = (0, 7);
        row.lapse();
        assert_eq!(row.spent, 5);
    }
}
