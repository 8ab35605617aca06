use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use smallvec::SmallVec;

use super::core::Core;
use super::entry::Locked;
use super::key_reservation::KeyReservations;
use super::key_state::KeyState;
use super::permit::Permit;
use super::scopes::{Blocker, Scopes};
use super::standing::{OwnStanding, Standing};
use super::table::{KeyRef, Table};
use crate::answer::code::Code;
use crate::answer::decision::Decision;
use crate::answer::error::{AcquireError, Refused};
use crate::backend::{Reservation, Reserved};
use crate::engine::Wait;
use crate::event::Metadata;
use crate::key::denial::Denial;
use crate::key::queue::{Service, Turn};
use crate::plan::{DefaultLimits, Plan};
use crate::quota::{Cost, Dimension, Limit, Quota};
use crate::timestamp::Timestamp;

/// A request for a reservation: its keys, its cost and its options.
pub(super) struct Request {
    pub(super) keys: SmallVec<[KeyRef; 1]>,
    pub(super) cost: Cost,
    /// Limits that came with the request.
    pub(super) limits: Option<Box<Quota>>,
    /// A dimension of the cost that those limits don't count.
    missing_limit: Option<Dimension>,
    /// A dimension of the default limits of its keys that the backend wouldn't keep.
    lost_default: Option<Dimension>,
    pub(super) metadata: Option<Metadata>,
    pub(super) deadline: Option<Timestamp>,
    /// The time of its arrival; the epoch before.
    pub(super) arrived_at: Timestamp,
    /// The largest number of requests to wait behind.
    pub(super) max_waiting: Option<usize>,
    /// `true` if a provider answers the request, and its answers are reported.
    pub(super) is_answered: bool,
    /// `true` if a refusal has to carry the levels of the keys.
    pub(super) with_levels: bool,
    /// The arrival number of a request that has to arrive again because a key was retired.
    pub(super) arrival: Option<u64>,
    /// The priority and the flow that the caller sets.
    pub(super) own_standing: Option<Box<OwnStanding>>,
    standing: Standing,
    /// The time until which the request waits behind others that ask a backend, even if its deadline is
    /// earlier.
    patience: Option<Timestamp>,
    /// `true` if the request is decided now or not at all.
    pub(super) is_immediate: bool,
}

/// The decision about a request under its keys at one point in time.
pub(super) enum Verdict {
    Admit,
    /// A backend keeps the buckets, and has to decide.
    Ask,
    Wait(Blocker),
    Fail(AcquireError),
}

impl Request {
    pub(super) fn new(keys: SmallVec<[KeyRef; 1]>, cost: Cost) -> Self {
        Self {
            keys,
            cost,
            limits: None,
            missing_limit: None,
            lost_default: None,
            metadata: None,
            deadline: None,
            arrived_at: Timestamp::UNIX_EPOCH,
            max_waiting: None,
            is_answered: false,
            with_levels: false,
            arrival: None,
            own_standing: None,
            standing: Standing::default(),
            patience: None,
            is_immediate: false,
        }
    }

    /// Sets limits for the keys of the request. If the limits don't count a dimension of the cost, the
    /// request is refused and changes no limits; so it is if the backend wouldn't keep a limit that never resets.
    pub(super) fn set_limits(&mut self, limits: &Quota) {
        let lost = self.lost_limit(limits.limits().iter());
        self.missing_limit = lost.or_else(|| missing_limit(&self.cost, limits));
        self.limits = self.missing_limit.is_none().then(|| Box::new(limits.clone()));
    }

    /// Sets the limits of those of its keys that no quota covers. If there are such keys, and the backend wouldn't keep
    /// one that never resets, the request is refused.
    pub(super) fn set_default_limits(&mut self, limits: &DefaultLimits) {
        self.lost_default = self.lost_limit(limits.0.rules.iter().map(|rule| rule.limit()));
        for key_ref in &mut self.keys {
            key_ref.default_plan = Some(Arc::clone(&limits.0));
        }
    }

    /// Returns the dimension of a limit that never resets, which a backend wouldn't keep.
    fn lost_limit<'a>(&self, mut limits: impl Iterator<Item = &'a Limit>) -> Option<Dimension> {
        let lost = limits.find(|limit| limit.window().is_endless())?;
        (!self.core().is_local()).then(|| lost.dimension().clone())
    }

    /// Decides about the request under one of its keys, without reserving.
    pub(super) fn decide(&self, key_ref: &KeyRef) -> Decision {
        let (core, key) = (self.core(), &key_ref.key);
        let Some(table) = key_ref.shard.table() else {
            let refused = Refused::new(key, Code::Closed, Wait::Never, core.clock.now());
            return Decision::refused_by(refused);
        };
        if let Some(dimension) = self.uncounted(|| self.plan_under(key_ref).is_some()) {
            let refused = Refused::missing_limit(key, dimension.clone(), core.clock.now());
            return Decision { stats: table.stats(key), ..Decision::refused_by(refused) };
        }
        let cost = self.cost_under(key_ref, &table);
        match self.plan_under(key_ref) {
            Some(plan) => table.decide_under(key, &cost, &plan),
            None => table.decide(key, &cost),
        }
    }

    /// Returns the plan of a key if its limits come with the request.
    fn plan_under(&self, key_ref: &KeyRef) -> Option<Arc<Plan>> {
        let quotas = self.core().quotas.read();
        match (self.limits.as_deref(), &key_ref.default_plan) {
            (Some(limits), _) => {
                Some(Arc::new(quotas.given(&key_ref.key, limits, key_ref.read_by, 0)))
            }
            (None, Some(plan)) if quotas.name_of(&key_ref.key).is_none() => Some(Arc::clone(plan)),
            _ => None,
        }
    }

    /// Returns the cost under one of several keys, without custom dimensions that only others count.
    fn cost_under(&self, key_ref: &KeyRef, table: &Table) -> Cow<'_, Cost> {
        if self.keys.len() == 1 || !self.cost.has_customs() {
            return Cow::Borrowed(&self.cost);
        }
        let counts = |key_ref: &KeyRef, custom: &str| match self.plan_under(key_ref) {
            Some(plan) => plan.counts_custom(custom),
            None => {
                let counts = |_: &_, state: &KeyState| state.plan().counts_custom(custom);
                table.peek(&key_ref.key, counts).unwrap_or(false)
            }
        };
        let is_kept = |custom: &str| {
            counts(key_ref, custom) || !self.keys.iter().any(|other| counts(other, custom))
        };
        Cow::Owned(self.cost.with_customs(is_kept))
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.keys[0].shard.core
    }

    /// Returns whether the request has no options that need the slow path.
    #[inline]
    fn has_fast_path(&self) -> bool {
        self.limits.is_none()
            && self.missing_limit.is_none()
            && self.lost_default.is_none()
            && self.metadata.is_none()
    }

    /// Returns the key of the request, if it may take the fast path.
    #[inline]
    pub(super) fn fast_key(&self) -> Option<&KeyRef> {
        match &self.keys[..] {
            [key_ref] if self.has_fast_path() => Some(key_ref),
            _ => None,
        }
    }

    /// Returns the plan of those of the keys that no quota covers.
    pub(super) fn default_plan(&self) -> Option<&Arc<Plan>> {
        self.keys[0].default_plan.as_ref()
    }

    /// Notes the time of its arrival, the first one if it arrives again. Lets it wait for one answer of the backend
    /// even if its deadline is earlier, since a request before it may only be asking.
    pub(super) fn set_arrival_time(&mut self, now: Timestamp) {
        if self.arrived_at == Timestamp::UNIX_EPOCH {
            self.arrived_at = now;
        }
        let backend = self.core().backend.as_ref();
        self.patience = backend.map(|backend| now + backend.patience());
    }

    /// Returns the time until which a request with this deadline waits behind others that ask a backend.
    fn latest(&self, deadline: Timestamp) -> Timestamp {
        deadline.max(self.patience.unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Returns the time at which a request with a deadline has to be checked again.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let is_ahead =
            |deadline: &Timestamp| self.patience.is_some() && *deadline > self.core().clock.now();
        let latest = || self.deadline.map(|deadline| self.latest(deadline));
        self.deadline.filter(is_ahead).or_else(latest)
    }

    /// Returns whether the request may wait for quota.
    pub(super) fn can_wait(&self, now: Timestamp) -> bool {
        !self.is_immediate && self.deadline.is_none_or(|deadline| deadline > now)
    }

    /// Determines its place in the order of the queues.
    pub(super) fn resolve_standing(&mut self) {
        let keys = self.keys.iter().map(|key_ref| &key_ref.key);
        self.standing = Standing::of(self.own_standing.as_deref(), keys, self.core());
    }

    /// Returns its turn with this arrival number.
    pub(super) fn turn(&self, arrival: u64) -> Turn {
        self.standing.turn(arrival)
    }

    /// Returns the service that it needs of a key.
    pub(super) fn service(&self, key: &Locked<'_>) -> Service {
        self.standing.service(key.plan(), &key.part(&self.cost), self.core())
    }

    /// Returns the service that its flow is charged under a key, if the request needed this unit on arrival.
    pub(super) fn granted_service(&self, key: &Locked<'_>, unit: u64) -> Service {
        self.standing.granted_service(unit, &key.part(&self.cost))
    }

    /// Charges its flow for the request, which is admitted without waiting in the queue of this key.
    pub(super) fn charge_turn(&self, turn: Turn, key: &mut Locked<'_>) {
        if key.queue().is_some_and(|queue| !queue.is_empty()) {
            let service = self.service(key);
            key.charge_turn(turn, service);
        }
    }

    /// Judges the request at its turn. `queue` is the key in whose queue it waits, if it does. All slow-path
    /// admission, under one key or several, happens here.
    pub(super) fn judge(&self, scopes: &Scopes<'_>, turn: Turn, queue: Option<usize>) -> Verdict {
        let core = self.core();
        if core.is_closed() {
            return Verdict::Fail(AcquireError::Closed);
        }
        if let Some(refused) = self.missing_limit_refusal(scopes) {
            return Verdict::Fail(AcquireError::Refused(self.with_levels_of(scopes, refused)));
        }
        let passes_askers = !core.is_local() && !self.can_wait(scopes.now());
        match scopes.blocker(&self.cost, turn, queue, core.is_local(), passes_askers) {
            None if core.is_local() => Verdict::Admit,
            None => Verdict::Ask,
            Some(blocker) => {
                let error = self.wait_error(scopes, blocker);
                error.map_or(Verdict::Wait(blocker), Verdict::Fail)
            }
        }
    }

    /// Returns the refusal of a cost in a dimension that no limit counts.
    fn missing_limit_refusal(&self, scopes: &Scopes<'_>) -> Option<Refused> {
        let takes_default = || scopes.own().any(|scope| !scope.plan().named);
        match self.uncounted(takes_default) {
            None => scopes.missing_limit(&self.cost),
            Some(dimension) => {
                let key = scopes.get(0).key();
                Some(Refused::missing_limit(key, dimension.clone(), scopes.now()))
            }
        }
    }

    /// Returns a dimension that wouldn't be counted by the limits that came with the request.
    fn uncounted(&self, takes_default: impl FnOnce() -> bool) -> Option<&Dimension> {
        let lost = self.lost_default.as_ref().filter(|_| self.limits.is_none() && takes_default());
        self.missing_limit.as_ref().or(lost)
    }

    /// Returns the error of a request for which waiting cannot succeed.
    pub(super) fn wait_error(&self, scopes: &Scopes<'_>, blocker: Blocker) -> Option<AcquireError> {
        if blocker.denial.wait() == Wait::Never {
            let refused = scopes.refused(blocker, &self.cost);
            return Some(AcquireError::Refused(self.with_levels_of(scopes, refused)));
        }
        if self.is_immediate {
            return None;
        }
        self.deadline_error(scopes, blocker).or_else(|| self.quota_error(scopes, blocker))
    }

    /// Returns the error of a request that its own deadline ends.
    pub(super) fn deadline_error(
        &self,
        scopes: &Scopes<'_>,
        blocker: Blocker,
    ) -> Option<AcquireError> {
        let may_fit_by = |by| scopes.may_fit_by(&self.cost, by, self.core().is_local());
        self.late_by(self.deadline?, scopes, blocker, may_fit_by)
    }

    /// Returns the error of a request that this key blocks for longer than until a deadline. `may_fit_by` returns
    /// whether it could fit by then if all requests in flight came back without a charge.
    pub(super) fn late_by(
        &self,
        deadline: Timestamp,
        scopes: &Scopes<'_>,
        blocker: Blocker,
        may_fit_by: impl FnOnce(Timestamp) -> bool,
    ) -> Option<AcquireError> {
        let earliest = match blocker.denial.wait() {
            Wait::Never => return None,
            Wait::At(time) => time,
            Wait::Unknown => scopes.now(),
        };
        let deadline = match blocker.denial {
            Denial::OthersWaiting(_) if !scopes.get(blocker.scope).is_short() => {
                self.latest(deadline)
            }
            _ => deadline,
        };
        let is_missed = deadline <= scopes.now() || deadline < earliest;
        // A backend knows when the key admits the request at its present limits.
        let recovers = || scopes.get(blocker.scope).recovers_at().is_some_and(|at| at <= deadline);
        let is_possible = |earliest| earliest <= deadline || recovers();
        let depends_on_others =
            !matches!(blocker.denial, Denial::Away(_)) && blocker.earliest.is_none_or(is_possible);
        if !is_missed || deadline > scopes.now() && depends_on_others && may_fit_by(deadline) {
            return None;
        }
        let refused = self.with_levels_of(scopes, scopes.refused(blocker, &self.cost));
        Some(AcquireError::DeadlineExceeded { deadline, refused })
    }

    /// Returns the error of a new request whose deadline is before its turn: the requests of its flow that
    /// wait already take longer.
    pub(super) fn late_error(
        &self,
        scopes: &Scopes<'_>,
        queue: usize,
        turn: Turn,
    ) -> Option<AcquireError> {
        let queue_key = scopes.get(queue);
        let deadline = self.deadline_at(queue_key).filter(|_| self.core().is_local())?;
        let earliest = queue_key.turn_after(deadline, turn, &queue_key.part(&self.cost))?;
        let blocker = Blocker::at(queue, Denial::OthersWaiting(Wait::At(earliest)));
        let refused = self.with_levels_of(scopes, scopes.refused(blocker, &self.cost));
        Some(AcquireError::DeadlineExceeded { deadline, refused })
    }

    /// Adds the levels of the keys to a refusal, if the request has asked for them and no keys share an
    /// entry.
    fn with_levels_of(&self, scopes: &Scopes<'_>, mut refused: Refused) -> Refused {
        if self.with_levels && scopes.own().count() == self.keys.len() {
            let backend = self.core().backend.as_ref();
            let levels = scopes.own().map(|scope| scope.limit_levels(scope.key(), backend));
            refused.details.get_or_insert_default().levels = Some(levels.collect());
        }
        refused
    }

    /// Ends the request with a permit for these reservations.
    pub(super) fn grant(
        &mut self,
        reservations: KeyReservations,
        remote: Option<Arc<Reservation>>,
        arrived_at: Timestamp,
        now: Timestamp,
    ) -> Permit {
        let cost = std::mem::take(&mut self.cost);
        let permit = Permit::of_reservations(reservations, remote, cost, now);
        self.report_granted(permit.cost(), arrived_at, now);
        permit
    }

    /// Returns the reservation to ask a backend for: the last one, unless a quota has changed since.
    pub(super) fn reservation(
        &self,
        scopes: &Scopes<'_>,
        last: Option<Arc<Reservation>>,
    ) -> Arc<Reservation> {
        let same = |last: &Arc<Reservation>| {
            let mut pairs = last.scopes.iter().zip(scopes.iter());
            pairs.all(|(reserved, scope)| Arc::ptr_eq(&reserved.rules, &scope.plan().rules))
        };
        last.filter(same).unwrap_or_else(|| {
            let (own, keys) = (self.own_standing.as_deref(), self.keys.iter());
            let keys = keys.map(|key_ref| &key_ref.key);
            Arc::new(Reservation {
                scopes: scopes.iter().map(Reserved::of).collect(),
                cost: scopes.clip_guesses(&self.cost),
                precedence: Standing::precedence(own, keys, self.core()),
            })
        })
    }
}

impl Reserved {
    pub(super) fn of(scope: &Locked<'_>) -> Self {
        let (key, rules) = (scope.key().clone(), Arc::clone(&scope.plan().rules));
        Self { key, rules, is_spending_key: scope.is_spending_key, note: AtomicU64::new(0) }
    }
}

/// Returns the first dimension of a cost that the limits don't count, or money if they limit it and the cost states
/// none. A cost of one request needs no limit on requests.
fn missing_limit(cost: &Cost, limits: &Quota) -> Option<Dimension> {
    if !cost.states_usd() && limits.limits().iter().any(|limit| limit.dimension().is_usd()) {
        return Some(Dimension::usd());
    }
    let tokens = [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens];
    let customs = cost.custom_amounts().filter(|custom| !custom.is_optional);
    let customs = customs.map(|custom| Dimension::custom(&custom.name));
    let named = tokens.into_iter().chain(customs).filter(|named| cost.amount(named) > 0);
    let several = (cost.amount(&Dimension::Requests) > 1).then_some(Dimension::Requests);
    let is_limited = |named: &Dimension| limits.limits().iter().any(|l| l.dimension() == named);
    named.chain(several).find(|named| !is_limited(named))
}
