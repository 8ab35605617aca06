use super::Adapt;
use super::windows::Windows;
use crate::answer::learned::LearnedLimit;
use crate::key::limits::Limits;
use crate::quota::Dimension;
use crate::timestamp::Timestamp;

/// The limits that were learned: reports, and what earlier runs and other programs have measured.
impl Adapt {
    /// Returns the limits that were learned.
    pub(crate) fn learned(&self, now: Timestamp) -> Vec<LearnedLimit> {
        let mut learned =
            self.controller.as_ref().map(|controller| controller.learned(now)).unwrap_or_default();
        for initial in &self.initial {
            let unchanged = |limit: &&mut LearnedLimit| {
                limit.dimension == initial.dimension && limit.measured_at <= self.started_at
            };
            if let Some(limit) = learned.iter_mut().find(unchanged) {
                (limit.measured_at, limit.source) = (initial.measured_at, initial.source);
            }
        }
        learned
    }

    /// Starts to test the limits with those that an earlier run or another program has measured, unless
    /// there are newer ones. Returns whether any was taken.
    pub(crate) fn start_with(
        &mut self,
        limits: &Limits,
        learned: &[LearnedLimit],
        now: Timestamp,
    ) -> bool {
        let own = self.learned(now);
        let is_newer = |limit: &&LearnedLimit| {
            let of_dimension = own.iter().find(|own| own.dimension == limit.dimension);
            of_dimension.is_none_or(|own| own.measured_at < limit.measured_at)
        };
        let is_current = |limit: &&LearnedLimit| limit.is_current(now);
        let taken: Vec<_> = learned.iter().filter(is_current).filter(is_newer).cloned().collect();
        if !taken.is_empty() {
            self.start_learning(limits, now);
            if let Some(controller) = &mut self.controller {
                controller.restore(&taken, now);
            }
            let is_kept =
                |initial: &LearnedLimit| taken.iter().all(|new| new.dimension != initial.dimension);
            self.initial.retain(is_kept);
            self.initial.extend(taken.iter().cloned());
            (self.started_at, self.sent_at) = (now, now);
            self.report(&taken);
        }
        !taken.is_empty()
    }

    /// Forgets what the provider's answers have shown, but for reductions: refusals and what they stop, learned limits,
    /// and the used parts of the account's windows.
    pub(crate) fn forget(&mut self) {
        self.cooling_until = Timestamp::UNIX_EPOCH;
        self.refusals = None;
        self.controller = None;
        self.initial.clear();
        self.utilization = Windows::default();
    }

    /// Returns the dimensions of the reported limits that have ended since the last call.
    pub(crate) fn take_ended(&mut self, now: Timestamp) -> Vec<Dimension> {
        let controller = self.controller.as_deref();
        let has_ended = |dimension: &mut Dimension| {
            controller.is_none_or(|test| !test.has_learned(dimension, now))
        };
        self.reported.extract_if(.., has_ended).collect()
    }

    /// Returns whether a learned limit was reported and hasn't ended.
    pub(crate) fn has_reported(&self) -> bool {
        !self.reported.is_empty()
    }

    /// Returns the limits that an event at `now` has measured, and counts them as reported.
    pub(super) fn take_measured(&mut self, now: Timestamp) -> Vec<LearnedLimit> {
        let all = self.learned(now);
        let is_measured =
            |limit: &&LearnedLimit| limit.measured_at == now && limit.is_principal(&all);
        let learned: Vec<_> = all.iter().filter(is_measured).cloned().collect();
        self.report(&learned);
        learned
    }

    fn report(&mut self, learned: &[LearnedLimit]) {
        for limit in learned {
            if !self.reported.contains(&limit.dimension) {
                self.reported.push(limit.dimension.clone());
            }
        }
    }
}
