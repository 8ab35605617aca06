use std::time::Duration;

use crate::answer::utilization::Utilization;
use crate::timestamp::Timestamp;

/// The used parts of the account's windows, as the provider has last stated them.
#[derive(Debug, Default)]
pub(super) struct Windows {
    pub(super) latest: Vec<Utilization>,
    /// The end of the cool-down for a window whose part is used.
    pub(super) held_until: Option<Timestamp>,
}

impl Windows {
    /// Returns whether no window has been stated for a while.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        self.latest.iter().all(|window| now - window.observed_at > LEARNED_FOR)
    }

    /// Moves all times back by the amount by which the clock was set back.
    pub(super) fn rebase(&mut self, back: Duration) {
        let times = self.latest.iter_mut().flat_map(Utilization::times_mut);
        for at in times.chain(&mut self.held_until) {
            *at = at.saturating_sub(back);
        }
    }
}

/// The time for which what was learned of an idle key is kept.
pub(super) const LEARNED_FOR: Duration = Duration::from_secs(3_600);
