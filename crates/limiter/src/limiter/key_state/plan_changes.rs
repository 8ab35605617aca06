use std::sync::Arc;

use super::{ExtraState, KeyState};
use crate::key::limits::Limits;
use crate::plan::Plan;

/// Changes of the plan, resets and retirement.
impl KeyState {
    #[inline]
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.limits.plan
    }

    /// Returns `true` if a quota covers the key, and no provider has read it from a request.
    #[inline]
    pub(crate) fn is_unread(&self) -> bool {
        self.plan().provider.is_none() && !self.plan().is_default()
    }

    /// Returns the plan of the key's quota, without a reduction after a refusal.
    pub(crate) fn full_plan(&self) -> &Arc<Plan> {
        let Self { limits, extra, .. } = self;
        extra.as_ref().map_or(&limits.plan, |extra| extra.adapt.full_plan(limits))
    }

    /// Changes to another plan and ends a reduction.
    pub(crate) fn follow(&mut self, plan: Arc<Plan>) {
        let now = self.now();
        let has_same_rates = plan.has_rates_of(self.full_plan());
        self.is_confirmed &= has_same_rates;
        let Self { limits, extra, .. } = self;
        let Some(extra) = extra else {
            *limits = limits.carried(plan, now);
            return;
        };
        let from = extra.adapt.sends_at(now);
        if let Some(reduced) = extra.adapt.take_reduction() {
            *limits = limits.resized(reduced.original, from);
        }
        extra.claims.release_requests();
        if let Some(journal) = &mut extra.journal {
            journal.follow(limits, &plan, now);
        }
        *limits = limits.carried(plan, from);
        if let Some(journal) = &extra.journal {
            journal.hold_for_others(limits);
        }
        extra.adapt.restart_trace(limits, now);
        extra.adapt.hold_utilization(limits.plan.terms.utilization(), now);
        if !has_same_rates {
            extra.adapt.restart_learning(limits, now);
        }
    }

    /// Marks the key as known or unknown. `removed_at` is the last arrival number of the requests that
    /// wait for a quota that was removed.
    pub(crate) fn set_unknown(&mut self, is_unknown: bool, removed_at: Option<u64>) {
        if is_unknown || self.extra.is_some() {
            let extra = self.extra_mut();
            extra.is_unknown = is_unknown;
            extra.removed_at = removed_at.unwrap_or(extra.removed_at);
        }
    }

    /// Calls a function with the state that the key would have under another plan, without a reduction.
    pub(crate) fn with_plan<T>(&mut self, plan: &Arc<Plan>, read: impl FnOnce(&Self) -> T) -> T {
        if plan.given.is_some() && plan.given == self.limits.plan.given {
            return read(self);
        }
        let limits = self.limits.carried(Arc::clone(plan), self.now());
        let mut extra = self.extra.take();
        let reduction = extra.as_mut().and_then(|extra| extra.adapt.take_reduction());
        let mut other = Self { limits, time: self.time, is_confirmed: self.is_confirmed, extra };
        let value = read(&other);
        self.extra = other.extra.take();
        if let Some(extra) = &mut self.extra {
            extra.adapt.put_reduction(reduction);
        }
        value
    }

    /// Marks the key as retired, because other keys' buckets count its requests now, and wakes all waiters. Returns its
    /// limits, whose usage these buckets have to count.
    pub(crate) fn retire(&mut self) -> Limits {
        self.end_reduction();
        self.extra_mut().is_retired = true;
        self.wake_all();
        self.limits.clone()
    }

    /// Adds the usage of a retired key to that of this one. Stores know it under the name of the retired key.
    pub(crate) fn merge(&mut self, retired: &Limits) {
        self.limits.merge(retired, self.now());
        self.record(|_, _, _| {});
        self.wake_if_short();
    }

    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.is_retired)
    }

    /// Returns whether the key is equivalent to a new one, so that it can be dropped.
    pub(crate) fn is_idle(&self) -> bool {
        let now = self.now();
        let is_idle = |extra: &ExtraState| {
            let is_open = extra.journal.as_ref().is_some_and(|journal| journal.is_open());
            extra.queue.is_empty()
                && extra.claims.is_empty()
                && extra.adapt.is_idle(now)
                && !is_open
        };
        self.extra.as_deref().is_none_or(is_idle) && self.limits.is_fresh(now)
    }

    /// Resets the usage and ends what refusals have stopped. Reservations in flight stay held, and return nothing of
    /// their usage when they end. `successor` makes the plan that the key then has.
    pub(crate) fn reset(&mut self, successor: impl FnOnce(&Arc<Plan>) -> Arc<Plan>) {
        self.clear(successor);
        self.is_confirmed = false;
        let now = self.now();
        if let Some(extra) = &mut self.extra {
            extra.adapt.forget();
            extra.journal.iter_mut().for_each(|journal| journal.reset(now));
        }
        self.notify_change();
    }

    pub(super) fn clear(&mut self, successor: impl FnOnce(&Arc<Plan>) -> Arc<Plan>) {
        self.end_reduction();
        let plan = successor(&self.limits.plan);
        self.limits.clear(plan);
    }
}
