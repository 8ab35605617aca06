use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Once};

use smallvec::SmallVec;

use super::entry::Entry;
use super::key_reservation::{GrantedKey, KeyReservation, KeyReservations};
use super::permit_details::{Charge, PermitDetails};
use super::shared::count_as_buckets;
use crate::backend::{Ending, Reservation};
use crate::event::{Event, TARGET};
use crate::quota::{Cost, Dimension, Key};
use crate::stated::{LimitReading, UtilizationReading};
use crate::timestamp::Timestamp;

/// A granted reservation.
///
/// Dropping a permit ends it and charges the reserved cost, so `let _permit = limiter.acquire(..).await?` is
/// plain rate limiting. Call [`settle`](Self::settle) when the actual usage of the request is known, and
/// [`release`](Self::release) if the request was never sent.
pub struct Permit {
    first: GrantedKey,
    details: Option<Box<PermitDetails>>,
    cost: Cost,
    granted_at: Timestamp,
    /// `true` if the limiter has something to do when the permit ends.
    is_open: bool,
    is_ended: bool,
}

impl Permit {
    #[inline]
    pub(super) fn new(first: GrantedKey, cost: Cost, granted_at: Timestamp, is_open: bool) -> Self {
        Self { first, details: None, cost, granted_at, is_open, is_ended: false }
    }

    pub(super) fn of_reservations(
        reservations: KeyReservations,
        remote: Option<Arc<Reservation>>,
        cost: Cost,
        granted_at: Timestamp,
    ) -> Self {
        let KeyReservations { first, others, is_open } = reservations;
        let KeyReservation { key: first, reserved, is_open: is_first_open } = first;
        let is_single = others.is_empty() && remote.is_none();
        let (cost, reserved) = match (&remote, reserved) {
            (Some(remote), _) => (remote.cost.clone(), None),
            (None, Some(clipped)) if is_single => (*clipped, None),
            (None, reserved) => (cost, reserved),
        };
        let details = (!is_single).then(|| {
            let early = SmallVec::new();
            Box::new(PermitDetails { reserved, is_first_open, others, remote, early })
        });
        Self { first, details, cost, granted_at, is_open, is_ended: false }
    }

    /// Returns the reserved cost, with estimates clipped to the amounts that the limits can hold. For
    /// several keys it is the requested cost, since each key clips by its own limits.
    #[inline]
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// Returns the time at which the permit was granted.
    #[inline]
    pub fn granted_at(&self) -> Timestamp {
        self.granted_at
    }

    /// Returns the key that the permit was granted for, or the first of several. If the key shares a
    /// quota with others, it is the name of that quota.
    pub fn key(&self) -> Key {
        self.first.entry.key.clone()
    }

    /// Returns `true` if a [`Backend`](super::Backend) keeps the buckets.
    pub(crate) fn is_remote(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.remote.is_some())
    }

    /// Returns the entry of the first key, and the version of its plan.
    pub(super) fn first(&self) -> (&Arc<Entry>, u32) {
        (&self.first.entry, self.first.version)
    }

    /// Returns whether the permit has one key and the limiter has nothing to do when it ends.
    pub(super) fn is_closed_and_single(&self) -> bool {
        !self.is_open && self.details.is_none()
    }

    /// Settles one dimension before the request ends, such as the input tokens of a response whose output
    /// is still streaming.
    ///
    /// The excess of the reservation in this dimension is available to others immediately. When the
    /// permit ends, this dimension is charged only the amount by which the final charge exceeds `charged`.
    ///
    /// Has no effect if nothing is held in this dimension: it was charged when the request was sent, it
    /// is already settled, or a [`Backend`](super::Backend) keeps it, which is settled when the permit
    /// ends.
    pub fn settle_early(&mut self, dimension: &Dimension, charged: u64) {
        if !self.is_open
            || *dimension == Dimension::Concurrency
            || self.is_remote()
            || self.is_settled(dimension)
        {
            return;
        }
        let mut cost = self.cost.clone();
        cost.set(dimension, charged);
        let keys = self.keys().filter(|(_, reserved)| !reserved.is_money() || dimension.is_usd());
        keys.for_each(|(key, reserved)| key.settle_early(dimension, reserved, &cost));
        self.details.get_or_insert_default().early.push((dimension.clone(), charged));
    }

    /// Compares the remaining amounts in the headers of a response with the limiter's own, while the
    /// permit of the request is open. The readings apply to the limits of the first key.
    ///
    /// A remaining amount below the lowest that the limiter expected between the grant of this permit and
    /// now shows that others use the account. The limiter then charges the difference, less the amount
    /// that may be in flight or rounded. The comparison doesn't depend on when the provider wrote the
    /// header, how long the response took, or what was sent in the meantime.
    ///
    /// - Remaining amounts are raised only by what was withheld of a burst.
    /// - The comparison allows for half of the safety margin of a token bucket, since requests may
    ///   overtake each other; for the rounding of a reading ([`LimitReading::granularity`]); and, if
    ///   reservations are charged when requests end, for the same amount again as is in flight, since
    ///   requests may use more than they reserved.
    /// - A reading is ignored if the key has no limit of its dimension and window, or if it states more
    ///   than its limit. The first response of a key only starts the comparison.
    /// - If a limit of the provider is lower than the key's, a warning is logged, once for as long as the
    ///   key is kept ([`prune`](super::LimiterState::prune)). [Learned](super::Feedback::learn) quotas
    ///   follow the headers; quotas that were set stay as they are.
    /// - Learned limits whose algorithm is unknown are counted as token buckets once the headers show that they
    ///   refill all the time: the remaining requests rise although none has left a window, or resets are in
    ///   proportion to what is used.
    /// - A token bucket has no larger burst than the headers have shown to be there at once, as where a limit per
    ///   minute is enforced per second. If a later response shows more, the burst grows at once.
    ///
    /// Once a key's readings are compared, each reservation of the key also notes the remaining amounts.
    pub fn observe(&self, readings: &[LimitReading]) {
        if self.is_remote() || readings.iter().all(|reading| reading.remaining.is_none()) {
            return;
        }
        let entry = &self.first.entry;
        let round = entry.core.dirty.round();
        let observed = entry.lock().observe(readings, self.granted_at, round);
        if observed.shows_refill {
            count_as_buckets(entry, readings);
        }
        for limit in observed.lower_limits {
            tracing::warn!(
                target: TARGET,
                key = entry.key.as_str(),
                dimension = limit.dimension.as_str(),
                ours = limit.ours,
                theirs = limit.theirs,
                "the provider's limit is below the quota's"
            );
        }
    }

    /// Records the used parts of the account's windows that the headers of a response state, under each key.
    /// A key whose quota holds it to a part cools down until the window of which that part is used starts again.
    pub fn observe_utilization(&self, readings: &[UtilizationReading]) {
        if readings.is_empty() {
            return;
        }
        for (GrantedKey { entry, .. }, _) in self.keys() {
            let until = entry.lock().see_utilization(readings);
            let Some(until) = until else { continue };
            let key = entry.key.clone();
            entry.core.events.announce(|| Event::CoolingDown {
                key,
                until,
                kind: None,
                agent: None,
            });
        }
    }

    /// Reports that the provider has accepted the request, which tests the limits of the first key. It counts even if the
    /// test began after the grant.
    #[inline]
    pub(crate) fn accepted(&self) {
        if self.first.entry.has_tests() {
            self.test_limits();
        }
    }

    /// Reports that the request was sent and its call dropped before an answer, which shows nothing.
    pub(crate) fn unanswered(&self) {
        if self.first.entry.has_tests() {
            self.first.entry.lock().on_unanswered(self.granted_at);
        }
    }

    #[inline(never)]
    fn test_limits(&self) {
        let entry = &self.first.entry;
        let ended = entry.lock().on_accepted(self.granted_at);
        for dimension in ended {
            let key = entry.key.clone();
            entry.core.events.announce(|| Event::LearnedLimitEnded { key, dimension });
        }
    }

    fn is_settled(&self, dimension: &Dimension) -> bool {
        let early = self.details.iter().flat_map(|details| &details.early);
        early.into_iter().any(|(early, _)| early == dimension)
    }

    /// Ends the permit and charges the actual usage of a request that was sent. An amount above the
    /// reservation becomes debt.
    ///
    /// A dimension that `charged` doesn't name is charged as reserved: `Cost::new().tokens(0)` charges no
    /// tokens, and `Cost::new()` charges the reserved tokens. If the dimensions of the charge don't match
    /// the limits of the key, an [`Event::ChargeMismatch`] is sent.
    #[inline]
    pub fn settle(mut self, charged: &Cost) {
        if self.is_open || *charged != self.cost || self.is_clipped() {
            self.end(Charge::Stated(charged));
        } else {
            self.send_settled(Some(charged));
        }
        self.is_ended = true;
    }

    /// Ends the permit and returns the reservation, for a request that was never sent.
    pub fn release(mut self) {
        self.end(Charge::Nothing);
        self.is_ended = true;
    }

    /// Returns whether less than the cost was reserved under one of the keys.
    #[inline]
    fn is_clipped(&self) -> bool {
        self.details.is_some() && self.keys().any(|(_, reserved)| *reserved != self.cost)
    }

    #[inline]
    fn end(&self, charge: Charge<'_>) {
        let stated = match charge {
            Charge::Stated(stated) => Some(stated),
            Charge::Nothing | Charge::Reserved => None,
        };
        let completed = stated.and_then(|stated| stated.completed(&self.cost));
        let charged = match charge {
            Charge::Nothing => None,
            Charge::Reserved => Some(&self.cost),
            Charge::Stated(stated) => Some(completed.as_ref().unwrap_or(stated)),
        };
        let is_counted = match &self.details {
            None => self.first.end(self.granted_at, &self.cost, charged),
            Some(details) => self.end_all(details, charge, charged),
        };
        self.send_settled(charged);
        if let Some(stated) = stated
            && (completed.is_some() || !is_counted)
        {
            self.report_mismatch(stated);
        }
    }

    /// Ends the reservations under all keys. Each charges the stated amounts, or those reserved under it.
    #[cold]
    fn end_all(&self, details: &PermitDetails, charge: Charge<'_>, charged: Option<&Cost>) -> bool {
        if let Some(reservation) = &details.remote {
            if let Some(backend) = &self.first.entry.core.backend {
                let ending = charged.cloned().map_or(Ending::Released, Ending::Settled);
                backend.end(reservation, ending);
            }
            let end = |(key, reserved): (&GrantedKey, &Cost)| {
                key.end_remote(self.granted_at, reserved, charged.is_some());
            };
            self.keys().for_each(end);
            return false;
        }
        let end = |((key, own), is_open): ((&GrantedKey, &Cost), bool)| {
            let charged = match charge {
                Charge::Nothing => None,
                Charge::Reserved => Some(Cow::Borrowed(own)),
                Charge::Stated(stated) => {
                    let completed = stated.completed(own).map_or(Cow::Borrowed(stated), Cow::Owned);
                    Some(if own.is_money() { Cow::Owned(completed.money()) } else { completed })
                }
            };
            if details.early.is_empty() {
                let charged = charged.as_deref();
                let is_as_reserved = charged == Some(own) && !is_open;
                return is_as_reserved || key.end(self.granted_at, own, charged);
            }
            let reserved = details.unsettled(own.clone());
            let charged = charged.map(|charged| details.uncharged(charged.into_owned(), &charge));
            key.end(self.granted_at, &reserved, charged.as_ref())
        };
        let others = details.others.iter().map(|other| other.is_open);
        let keys = self.keys().zip(std::iter::once(details.is_first_open).chain(others));
        keys.map(end).filter(|is_counted| !is_counted).count() == 0
    }

    /// Reports a charge that doesn't match the limits of a key.
    #[cold]
    fn report_mismatch(&self, stated: &Cost) {
        let own = self.keys().filter(|(_, own)| !own.is_money());
        let plans = own.map(|(key, own)| (key, own, key.plan()));
        let plans: SmallVec<[_; 2]> = plans.collect();
        let elsewhere = |custom: &str| plans.iter().any(|(.., plan)| plan.counts_custom(custom));
        for (key, reserved, plan) in &plans {
            let unsettled = plan.unsettled_dimension(reserved, stated);
            let unsettled = unsettled.filter(|dimension| !self.is_settled(dimension));
            let kept = unsettled.is_some();
            let uncounted = || plan.uncounted_dimension(stated, elsewhere);
            let Some(dimension) = unsettled.or_else(uncounted) else { continue };
            let key = key.entry.key.clone();
            WARN.call_once(|| {
                tracing::warn!(
                    target: TARGET,
                    key = key.as_str(),
                    dimension = dimension.as_str(),
                    kept,
                    "a request was settled in other dimensions than the limits of its key: the \
                     reserved amounts are charged; settle in the dimensions of the limits"
                );
            });
            let events = &self.first.entry.core.events;
            events.announce(|| Event::ChargeMismatch { key, dimension, kept });
        }
    }

    /// Returns the keys with the costs reserved under them.
    fn keys(&self) -> impl Iterator<Item = (&GrantedKey, &Cost)> {
        let first = self.details.as_ref().and_then(|details| details.reserved.as_deref());
        let others = self.details.iter().flat_map(|details| &details.others);
        let others = others.map(|other| (&other.key, other.reserved.as_deref()));
        let all = std::iter::once((&self.first, first)).chain(others);
        all.map(|(key, reserved)| (key, reserved.unwrap_or(&self.cost)))
    }

    #[inline]
    fn send_settled(&self, charged: Option<&Cost>) {
        let events = &self.first.entry.core.events;
        if events.are_watched() {
            self.send_settled_events(charged);
        }
    }

    #[cold]
    fn send_settled_events(&self, charged: Option<&Cost>) {
        let charged = charged.cloned();
        for (key, reserved) in self.keys().filter(|(_, reserved)| !reserved.is_money()) {
            let (reserved, charged) = (reserved.clone(), charged.clone());
            let settled = Event::Settled { key: key.entry.key.clone(), reserved, charged };
            self.first.entry.core.events.send(|| settled);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys().map(|(key, _)| &key.entry.key).collect();
        f.debug_struct("Permit")
            .field("keys", &keys)
            .field("cost", &self.cost)
            .field("granted_at", &self.granted_at)
            .finish_non_exhaustive()
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        if self.is_open {
            self.end(Charge::Reserved);
        } else {
            self.send_settled(Some(&self.cost));
        }
    }
}

/// Limits the warning to once per process, since every request of a program has the same mistake.
static WARN: Once = Once::new();
