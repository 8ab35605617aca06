use std::time::Duration;

use super::priority::Priority;
use crate::timestamp::Timestamp;

/// The priorities whose last waiter has left without being served: if they get another one soon, it doesn't wait anew
/// for the turn of its priority.
#[derive(Debug, Default)]
pub(super) struct GivenUp(Vec<Band>);

#[derive(Debug)]
struct Band {
    priority: Priority,
    served_at: Timestamp,
    left_at: Timestamp,
}

impl GivenUp {
    /// Notes that the last waiter of a priority has left, which was last served at this time.
    pub(super) fn note(&mut self, priority: Priority, served_at: Timestamp, now: Timestamp) {
        self.0.push(Band { priority, served_at, left_at: now });
    }

    /// Returns the time at which a priority was last served, if its last waiter has left within this time, and forgets it
    /// and those that left before.
    pub(super) fn take(
        &mut self,
        priority: Priority,
        within: Duration,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.0.retain(|band| now < band.left_at + within);
        let at = self.0.iter().position(|band| band.priority == priority)?;
        Some(self.0.swap_remove(at).served_at)
    }

    /// Forgets a priority that is served.
    pub(super) fn forget(&mut self, priority: Priority) {
        self.0.retain(|band| band.priority != priority);
    }

    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.0.iter_mut().flat_map(|band| [&mut band.served_at, &mut band.left_at])
    }
}
