use super::KeyState;
use crate::answer::code::Code;
use crate::answer::error::Refused;
use crate::engine::{self, Shortfall, Wait};
use crate::key::denial::Denial;
use crate::key::limits::{Granted, Limits};
use crate::key::queue::Turn;
use crate::quota::{Cost, Dimension, Key};
use crate::timestamp::Timestamp;

/// Admission, reservation and settlement.
impl KeyState {
    /// Reserves if no request waits and a quick check shows that the cost fits. Nearly every request
    /// takes this path. `false` means only that the full check has to decide.
    #[inline]
    pub(crate) fn try_reserve_fast(&mut self, cost: &Cost, now: Timestamp) -> bool {
        if self.extra.as_ref().is_some_and(|extra| !extra.allows_fast_path(now))
            || !self.limits.try_reserve_fast(cost, now)
        {
            return false;
        }
        if self.extra.is_some() {
            self.record_reserved(cost, now);
        }
        true
    }

    /// Returns `true` if a quick check shows that the cost fits, and nothing but the limits counts. `false` means
    /// only that the full check has to decide.
    #[inline]
    pub(crate) fn fits_fast(&self, cost: &Cost, at: Timestamp) -> bool {
        let Limits { plan, buckets } = &self.limits;
        self.extra.is_none() && engine::fits(&plan.rules, buckets, cost, at)
    }

    /// Records a reservation, and withholds what headers have never shown to be there at once.
    fn record_reserved(&mut self, cost: &Cost, now: Timestamp) {
        if let Some(extra) = &mut self.extra {
            extra.adapt.withhold_unseen(&mut self.limits, now);
        }
        self.record(|journal, limits, now| journal.reserved(limits, cost, now));
    }

    /// Reserves for a new request if the cost fits and no request waits.
    pub(crate) fn reserve(&mut self, cost: &Cost) -> Result<(), Denial> {
        self.check(cost, true)?;
        self.commit(cost);
        self.end_long_wait();
        Ok(())
    }

    /// Checks whether a new request is admitted, behind all requests that wait. `is_local` is `true` if the
    /// buckets are in this process.
    pub(crate) fn check(&self, cost: &Cost, is_local: bool) -> Result<(), Denial> {
        if self.limits.plan.refused_dimension(cost, |_| false).is_some() {
            return Err(Denial::Uncounted);
        }
        match self.check_limits(cost, self.now()) {
            Err(denial) if denial.wait() == Wait::Never => Err(denial),
            result => self.check_turn(Turn::LAST, false, !is_local, cost).map_or(result, Err),
        }
    }

    /// Checks whether the cost fits, regardless of the queue. Its money alone fits even while the key is paused.
    pub(crate) fn check_limits(&self, cost: &Cost, at: Timestamp) -> Result<(), Denial> {
        self.check_limits_of(&self.limits, cost, at)
    }

    /// Returns the limits as if all requests in flight came back without a charge.
    pub(crate) fn limits_without_holds(&self) -> Limits {
        self.limits.without_holds()
    }

    /// Checks whether the cost fits these limits of the key. Without what is held, the wait is a lower bound, unlike
    /// that of [`check_limits`](Self::check_limits).
    pub(crate) fn check_limits_of(
        &self,
        limits: &Limits,
        cost: &Cost,
        at: Timestamp,
    ) -> Result<(), Denial> {
        if cost.is_money() || self.extra.is_none() {
            return self.check_buckets(limits, cost, at).map_err(Denial::Short);
        }
        match (self.check_rates(limits, cost, at), self.check_open(at)) {
            (Err(short), _) if short.wait() == Wait::Never => Err(short),
            (_, Err(Denial::CoolingDown(Wait::At(until)))) => {
                let then = self.check_rates(limits, cost, until).err();
                Err(Denial::CoolingDown(then.map_or(Wait::At(until), Denial::wait)))
            }
            (short, open) => open.and(short),
        }
    }

    /// Checks the buckets and the learned rates. Returns the denial with the longer wait.
    fn check_rates(&self, limits: &Limits, cost: &Cost, at: Timestamp) -> Result<(), Denial> {
        let short = self.check_buckets(limits, cost, at).map_err(Denial::Short);
        let paced = self.evidence().map_or(Ok(()), |adapt| adapt.check_pace(cost, at));
        match (short, paced) {
            (Err(short), Err(paced)) if paced.wait() > short.wait() => Err(paced),
            (short, paced) => short.and(paced),
        }
    }

    /// Checks whether the key admits requests at all: it is known and doesn't cool down.
    pub(crate) fn check_open(&self, at: Timestamp) -> Result<(), Denial> {
        match &self.extra {
            Some(extra) if extra.is_unknown => Err(Denial::Unknown),
            Some(extra) if extra.adapt.cooling_until > at => {
                Err(Denial::CoolingDown(Wait::At(extra.adapt.cooling_until)))
            }
            Some(extra) => extra.adapt.check_refusals(at),
            None => Ok(()),
        }
    }

    fn check_buckets(&self, limits: &Limits, cost: &Cost, at: Timestamp) -> Result<(), Shortfall> {
        let cost = &*limits.plan.clip_guesses(cost);
        match &self.extra {
            Some(extra) => extra.adapt.check(limits, cost, at),
            None => engine::check(&limits.plan.rules, &limits.buckets, cost, at),
        }
    }

    /// Reserves even if the cost doesn't fit.
    pub(crate) fn commit(&mut self, cost: &Cost) {
        let now = self.now();
        self.limits.commit(cost, now);
        self.note_sent(cost);
        self.record_reserved(cost, now);
        self.wake_if_short();
    }

    /// Notes a request that is sent. Its cost is reserved here or by a backend.
    #[inline]
    pub(crate) fn note_sent(&mut self, cost: &Cost) {
        let now = self.now();
        if let Some(extra) = self.extra.as_mut().filter(|_| !cost.is_money()) {
            extra.adapt.on_sent(&mut self.limits, cost, now);
        }
    }

    /// Charges a cost without a reservation, even if it doesn't fit.
    pub(crate) fn charge(&mut self, cost: &Cost) {
        self.limits.charge(cost, self.now());
        self.record(|journal, limits, now| journal.charged(limits, cost, now));
        self.wake_if_short();
    }

    /// Ends a reservation. `charged` is `None` for a request that was never sent.
    pub(crate) fn end(&mut self, granted: Granted<'_>, charged: Option<&Cost>) {
        self.limits.end(granted, charged, self.now());
        self.record(|journal, limits, now| journal.ended(limits, granted, charged, now));
        self.note_end(granted.cost, granted.at, charged.is_some());
    }

    /// Notes the end of a request, whose reservation has ended here or at a backend; `was_sent` is `false` if it never
    /// left.
    #[inline]
    pub(crate) fn note_end(&mut self, cost: &Cost, sent_at: Timestamp, was_sent: bool) {
        let now = self.now();
        if let Some(extra) = self.extra.as_mut().filter(|_| !cost.is_money()) {
            extra.adapt.on_end(cost, sent_at, was_sent, now);
        }
        self.notify_change();
    }

    /// Settles one dimension of a reservation before the request ends.
    pub(crate) fn settle_early(
        &mut self,
        granted: Granted<'_>,
        dimension: &Dimension,
        charged: &Cost,
    ) {
        let settled = self.limits.settle_early(granted, dimension, charged, self.now());
        self.record(|journal, limits, now| journal.settled_early(limits, &settled, charged, now));
        self.notify_change();
    }

    /// Returns the refusal of a request of this cost.
    #[cold]
    pub(crate) fn refused(&self, key: &Key, denial: Denial, cost: &Cost) -> Refused {
        let refused = denial.refused(key, &self.limits.plan, self.full_plan(), cost, self.now());
        match refused.code {
            Code::AccountRefused => return refused.with_refusal(self.account_refusal().cloned()),
            Code::CoolingDown => return refused.with_cooling_kind(self.cooling_kind()),
            _ => {}
        }
        let Some(dimension) =
            refused.dimension.as_ref().filter(|_| refused.code == Code::LearnedLimit)
        else {
            return refused;
        };
        let mut learned = self.learned();
        learned.retain(|limit| limit.dimension == *dimension);
        refused.with_learned(learned.pop())
    }
}
