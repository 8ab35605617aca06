use std::task::Waker;

use super::entry::Locked;
use super::queue_place::QueuePlace;
use super::request::Request;
use super::scopes::{Blocker, Scopes};
use crate::answer::error::AcquireError;
use crate::key::denial::Denial;
use crate::timestamp::Timestamp;

/// The longest waits that quotas allow. Each counts for the limits of its key alone.
impl Request {
    /// Returns the time until which the request may wait for the limits of a key, by the key's quota.
    fn quota_deadline(&self, key: &Locked<'_>) -> Option<Timestamp> {
        key.plan().terms.longest_wait().map(|wait| self.arrived_at + wait)
    }

    /// Returns the earlier of its deadline and the time until which the quota of a key lets it wait.
    pub(super) fn deadline_at(&self, key: &Locked<'_>) -> Option<Timestamp> {
        self.deadline.into_iter().chain(self.quota_deadline(key)).min()
    }

    /// Returns the error of a request that one of its keys doesn't admit for longer than its quota lets it wait.
    /// `blocker` is the key that blocks it for longest.
    pub(super) fn quota_error(
        &self,
        scopes: &Scopes<'_>,
        blocker: Blocker,
    ) -> Option<AcquireError> {
        let is_local = self.core().is_local();
        (0..scopes.len()).find_map(|scope| {
            let deadline = self.quota_deadline(scopes.get(scope))?;
            // A key that is short only when the others have room doesn't delay the request yet.
            let is_short_now = !is_local || matches!(blocker.denial, Denial::OthersWaiting(_));
            let own = scopes.denial(scope, &self.cost, scopes.now(), is_local);
            let own = own.map(|denial| Blocker::at(scope, denial));
            let blocker =
                own.or_else(|| (blocker.scope == scope && is_short_now).then_some(blocker))?;
            let may_fit_by = |by| scopes.key_may_fit_by(scope, &self.cost, by, is_local);
            self.late_by(deadline, scopes, blocker, may_fit_by)
        })
    }

    /// Returns the next time at which a quota's bound ends for a request that waits.
    pub(super) fn next_quota_deadline(&self, scopes: &Scopes<'_>) -> Option<Timestamp> {
        let deadlines = scopes.iter().filter_map(|scope| self.quota_deadline(scope));
        deadlines.filter(|&deadline| deadline > scopes.now()).min()
    }

    /// Lets the other keys wake a request that waits at this place once they are short, if their quotas don't let it
    /// wait any longer.
    pub(super) fn listen_for_shortage(
        &self,
        place: &QueuePlace,
        scopes: &mut Scopes<'_>,
        waker: &Waker,
    ) {
        let now = scopes.now();
        for scope in (0..scopes.len()).filter(|&scope| scope != place.scope) {
            let key = scopes.get_mut(scope);
            if self.quota_deadline(key).is_some_and(|deadline| deadline <= now) {
                let cost = key.part(&self.cost);
                key.listen_for_shortage(place.turn, &cost, waker);
            }
        }
    }
}
