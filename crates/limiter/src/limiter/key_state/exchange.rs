use std::sync::Arc;

use super::{ExtraState, KeyState};
use crate::key::changes::KeyChanges;
use crate::key::journal::Journal;
use crate::key::snapshot::KeySnapshot;
use crate::plan::Plan;
use crate::quota::Key;
use crate::timestamp::Timestamp;

/// Exchange with stores and other processes.
impl KeyState {
    /// Records all changes after `since` from now on.
    pub(crate) fn track(&mut self, since: Timestamp) {
        let (limits, extra) = (&self.limits, self.extra.get_or_insert_default());
        extra.journal.get_or_insert_with(|| Box::new(Journal::new(limits, since)));
    }

    /// Returns the changes since the last collection, if there are any.
    pub(crate) fn collect(&mut self, key: &Key) -> Option<KeyChanges> {
        let (now, is_retired) = (self.now(), self.is_retired());
        let Self { limits, extra, .. } = self;
        let ExtraState { adapt, journal, .. } = extra.as_deref_mut()?;
        let journal = journal.as_mut()?;
        if adapt.has_reported() {
            // Rates grow between the refusals that are recorded.
            journal.learned_now(adapt.learned(now));
        }
        let mut changes = journal.collect(key, limits, is_retired)?;
        changes.cooling_kind = changes.cooling_until.and_then(|until| adapt.cool_down_kind(until));
        Some(changes)
    }

    /// Applies changes by other limiters of the same store. Changes of buckets are applied only if the
    /// buckets are in this process (`is_local`). `renew` makes the plan after a reset, and `round` is the
    /// current round of the list of dirty keys. Returns the end of the cool-down if it is later than
    /// before.
    pub(crate) fn apply(
        &mut self,
        change: &KeyChanges,
        renew: impl FnOnce(&Arc<Plan>) -> Arc<Plan>,
        is_local: bool,
        round: u64,
    ) -> Option<Timestamp> {
        let now = self.now();
        // What others learned, and the windows that they know, are read when a store is opened.
        let KeyChanges {
            key: _,
            buckets,
            cooling_until,
            cooling_kind,
            learned: _,
            utilization: _,
            reset_at,
        } = change;
        if reset_at.is_some() {
            self.clear(renew);
        }
        let (limits, extra) = (&mut self.limits, self.extra.get_or_insert_default());
        if reset_at.is_some() {
            self.is_confirmed = false;
            extra.adapt.forget();
        }
        if let Some(journal) = &mut extra.journal {
            if let Some(reset_at) = *reset_at {
                extra.adapt.cooling_until = journal.apply_reset(limits, reset_at, now);
            }
            for bucket in buckets.iter().filter(|_| is_local) {
                journal.apply(limits, bucket, round, now);
            }
        }
        let mut longer = None;
        match *cooling_until {
            Some(until) if until <= now => extra.adapt.cooling_until = Timestamp::UNIX_EPOCH,
            Some(until) => {
                let is_longer = extra.adapt.cool_down_until(limits, until, *cooling_kind, now);
                longer = is_longer.then_some(until);
            }
            None => {}
        }
        extra.adapt.note(limits, now);
        if cooling_until.is_some() {
            // Some requests may now miss their deadlines.
            self.wake_all();
        }
        self.notify_change();
        longer
    }

    /// Returns the state to keep across a restart, without amounts that other limiters hold: they save
    /// those themselves.
    pub(crate) fn snapshot(&self, key: &Key) -> KeySnapshot {
        let journal = self.extra.as_ref().and_then(|extra| extra.journal.as_deref());
        let by_others = |rule| journal.map_or(0, |journal| journal.held_by_others(rule));
        let buckets = self.limits.save(by_others, self.now());
        let (cooling_until, cooling_kind) = (self.cools_until(), self.cooling_kind());
        let mut learned = self.learned();
        learned.retain(|limit| limit.is_current(self.now()));
        let utilization = self.evidence().map(|adapt| adapt.utilization(None, self.now()));
        let utilization = utilization.unwrap_or_default();
        let key = key.to_string();
        KeySnapshot { key, buckets, cooling_until, cooling_kind, learned, utilization }
    }

    /// Adds the usage of another limiter or of an earlier run. Usage of buckets is added only if the
    /// buckets are in this process (`is_local`).
    pub(crate) fn absorb(&mut self, snapshot: &KeySnapshot, is_local: bool) {
        let now = self.now();
        // The limiter starts to test the learned limits itself.
        let KeySnapshot { key: _, buckets, cooling_until, cooling_kind, learned: _, utilization } =
            snapshot;
        if is_local {
            self.limits.absorb(buckets, now);
        }
        self.record(|_, _, _| {});
        if !utilization.is_empty() {
            let held_to = self.full_plan().terms.utilization();
            let windows = utilization.iter().filter(|window| window.is_current(now));
            self.adapt(|adapt, _, now| adapt.restore_utilization(windows.cloned(), held_to, now));
        }
        if let Some(until) = *cooling_until {
            let kind = *cooling_kind;
            self.adapt(|adapt, limits, now| adapt.cool_down_until(limits, until, kind, now));
        }
    }
}
