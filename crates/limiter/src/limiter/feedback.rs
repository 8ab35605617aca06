use std::time::Duration;

use smallvec::SmallVec;

use super::entry::Locked;
use super::key_budget::KeyBudget;
use super::key_state::KeyState;
use super::shared::Shared;
use crate::answer::error::BuildError;
use crate::answer::learned::LearnedFrom;
use crate::event::CoolDown;
use crate::event::Event;
use crate::event::RateLimited;
use crate::event::{CapacityUpdate, Ignored, LearnedUpdate, TARGET};
use crate::key::adapt::{Adapt, KeyPace, Reduction, is_rate};
use crate::key::limits::Limits;
use crate::plan::Pattern;
use crate::quota::{Key, Limit, Window};
use crate::stated::LimitReading;
use crate::timestamp::Timestamp;

/// A handle for feedback to a [`Limiter`](super::Limiter): the answers of providers, and messages of
/// other programs that share an account.
///
/// The layer and the bus of `paceline` report this by themselves. Call it where requests are sent without them.
///
/// ```
/// use std::time::Duration;
/// use paceline_limiter::limiter::RateLimited;
/// use paceline_limiter::{Cost, Limiter, Quota};
/// let limiter = Limiter::builder().quota("gpt-4o", Quota::new().rpm(500)).build()?;
/// limiter.feedback().rate_limited("gpt-4o", &RateLimited::new(Some(Duration::from_secs(3))));
/// assert!(limiter.try_acquire("gpt-4o", &Cost::new()).is_err());
/// # Ok::<(), paceline_limiter::limiter::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Feedback<'a> {
    pub(super) shared: &'a Shared,
    pub(super) budget: Option<&'a KeyBudget>,
}

impl Feedback<'_> {
    /// Reports that the provider refused requests of this key. For a rate:
    ///
    /// - The key cools down: no request of the key is sent until the delay has passed, plus a part of
    ///   [`spread`](Reduction::spread) that differs between limiters.
    /// - The refusal shows that the provider's bucket is empty, so token buckets are empty at the end
    ///   of the cool-down: waiting requests start again at the refill rate, and not all at the same
    ///   time. Windows keep their usage.
    /// - The key is [reduced](Reduction): its concurrency limits and those with a window shorter than
    ///   a day, or only those of the dimension that the refusal names, if it names a limited one. A
    ///   burst of refusals reduces the key once: refusals of requests sent before the last reduction
    ///   belong to the same burst.
    /// - The key recovers step by step, the first step an [`interval`](Reduction::interval) after the
    ///   end of the cool-down. Another quota, or [`reset`](super::Limiter::reset), ends the reduction.
    ///
    /// A used-up [window](RateLimited::until_reset) only starts a cool-down. Refusals for
    /// [lack of capacity](RateLimited::overloaded) stop the key after five in a row, and one request at a time then
    /// tests whether the provider accepts requests again. Three refusals of the account let the key answer all its
    /// requests with [`Code::AccountRefused`](super::Code::AccountRefused), between tests by single requests. A
    /// [`reset`](super::Limiter::reset) ends all of these. A refusal of a request concerns no other one.
    pub fn rate_limited(&self, key: &str, refusal: &RateLimited) {
        self.refuse(key, None, refusal, None);
    }

    /// Learns the limits of a key from a response's headers, unless you have set a quota for it.
    ///
    /// Learned limits replace a provider's default quota, which is that of its lowest paid tier. For
    /// a key without any quota, the usage that the headers state is counted too, and a successful
    /// response without limits makes the key unlimited. Later changes of the amounts are followed.
    pub fn learn(&self, key: &str, readings: &[LimitReading]) {
        let limit = |reading: &LimitReading| {
            Limit::new(reading.dimension.clone(), reading.limit?, reading.window)
        };
        let limits: SmallVec<[Limit; 4]> = readings.iter().filter_map(limit).collect();
        if self.adopt_limits(key, &limits) {
            self.count_used(key, readings);
        }
    }

    /// Learns these limits of a key. Returns `true` if it had no learned ones.
    pub(super) fn adopt_limits(&self, key: &str, limits: &[Limit]) -> bool {
        let core = &self.shared.core;
        // Nearly every response of a provider without limit headers.
        if limits.is_empty() && !core.quotas.read().learns_missing_limits() {
            return false;
        }
        // Keys come from requests: one that is also a pattern must not set limits for others.
        if Pattern::is_one(key) || core.quotas.read().learned_quota(key, limits).is_none() {
            return false;
        }
        // Limits that came with a request take precedence.
        let plan =
            |_: &_, state: &KeyState| (state.plan().given.is_some(), state.plan().provider_name());
        let Some((false, read_by)) = self.shared.table.peek(key, plan) else { return false };
        let version = core.next_version();
        // Of several responses at the same time only the first is taken.
        let learned = core.change_quotas(|quotas| quotas.learn(key, limits, read_by, version));
        let Some((quota, is_first)) = learned else { return false };
        self.shared.replan(key, &quota);
        if quota.is_unlimited() {
            tracing::warn!(target: TARGET, key, "responses state no limits; the key is not limited");
        } else {
            tracing::info!(target: TARGET, key, ?quota, "limits learned from response headers");
        }
        is_first
    }

    /// Records the number of output tokens of a request of this key.
    pub fn output_seen(&self, key: &str, tokens: u64) {
        self.usage_seen(key, tokens, false);
    }

    /// Records the number of output tokens of a request of this key, and whether a part of its prompt was read from a
    /// cache.
    pub(crate) fn usage_seen(&self, key: &str, output: u64, reads_cache: bool) {
        self.shared.core.outputs.record(self.shared.core.hash(key), key, output, reads_cache);
    }

    /// Returns the number of output tokens to expect of a request of this key: the
    /// [`output_quantile`](super::Builder::output_quantile) of its last 64 outputs (by default, nine
    /// of ten had no more). Returns `None` before five outputs were recorded.
    ///
    /// For providers that charge actual output.
    ///
    /// ```
    /// let limiter = paceline_limiter::Limiter::builder().build()?;
    /// (1..=10).for_each(|tokens| limiter.feedback().output_seen("claude", tokens * 100));
    /// assert_eq!(limiter.feedback().expected_output("claude"), Some(900));
    /// # Ok::<(), paceline_limiter::limiter::BuildError>(())
    /// ```
    pub fn expected_output(&self, key: &str) -> Option<u64> {
        self.expected_usage(key).0
    }

    /// Returns the expected output of a request of this key, and whether a part of its prompt may be read from a cache,
    /// as one of the last 64 was.
    pub(crate) fn expected_usage(&self, key: &str) -> (Option<u64>, bool) {
        self.shared.core.outputs.expected(self.shared.core.hash(key), key)
    }

    /// Reduces a key for a reason other than a reported refusal, at most once in ten seconds. Returns
    /// `true` if it was reduced.
    pub fn reduce(&self, key: &str, reason: &str) -> bool {
        let Some(pace) = *self.shared.core.reduction.read() else { return false };
        let reduced = self.with(key, |state| {
            let reduced = state.adapt(|adapt, limits, now| adapt.reduce(limits, pace, now));
            reduced.then(|| (state.key().clone(), state.capacity()))
        });
        let Some((key, capacity)) = reduced.flatten() else { return false };
        self.report_reduced(key, capacity, reason, None);
        true
    }

    /// Sets the amount by which a refusal reduces a key, and the pace of its recovery.
    ///
    /// Keys that are reduced recover at the new pace. With [`Reduction::OFF`] they have their full
    /// quota again immediately.
    ///
    /// # Errors
    /// [`BuildError::OutOfRange`] for an invalid reduction; nothing has changed then.
    pub fn set_reduction(&self, reduction: &Reduction) -> Result<(), BuildError> {
        let pace = reduction.pace()?;
        *self.shared.core.reduction.write() = pace;
        self.shared.for_each(|key| key.set_pace(pace));
        Ok(())
    }

    /// Applies another program's reduction of a key: its concurrency limits and those with a window
    /// shorter than a day are reduced in proportion. `own` is this program's name among the agents.
    /// The key recovers as after a refusal. Returns the new capacity.
    ///
    /// # Errors
    /// The reason for which the update is [`Ignored`]; nothing has changed then.
    pub fn apply(&self, update: &CapacityUpdate, own: &str) -> Result<u64, Ignored> {
        let pace = self.shared.core.reduction.read().ok_or(Ignored::Off)?;
        let key = update.resource.as_str();
        let has_capacity = |_: &_, state: &KeyState| {
            let plan = state.plan();
            plan.known && plan.rules.iter().any(|rule| is_rate(rule.limit()))
        };
        match () {
            () if update.agent_id == own => return Err(Ignored::Own),
            () if update.new_capacity == 0 => return Err(Ignored::Zero),
            () if !self.shared.table.peek(key, has_capacity).unwrap_or(false) => {
                return Err(Ignored::Unknown);
            }
            () => {}
        }
        let applied = self.with(key, |state| {
            let (now, sent_at, new) = (state.now(), update.timestamp, update.new_capacity);
            let is_applied = state.evidence().is_some_and(|adapt| adapt.is_update_stale(sent_at));
            if sent_at.abs_diff(now) > pace.interval || is_applied {
                return Err(Ignored::Stale);
            }
            if new >= state.capacity() {
                return Err(Ignored::NotLower);
            }
            state.adapt(|adapt, limits, now| {
                adapt.follow_update(limits, pace, new, sent_at, now);
            });
            Ok((state.key().clone(), state.capacity()))
        });
        let (key, capacity) = applied.ok_or(Ignored::Unknown)??;
        self.report_reduced(key, capacity, &update.reason, Some(&update.agent_id));
        Ok(capacity)
    }

    /// Applies another program's cool-down of a key. Returns its end.
    ///
    /// No request of the key is sent until then. The end includes a part of
    /// [`spread`](Reduction::spread) that differs between limiters, so that they don't all start
    /// again at the same time. Token buckets are empty at the end, as after a
    /// [refusal](Self::rate_limited); the key isn't reduced. `own` is this program's name among the
    /// agents.
    ///
    /// A running cool-down is never shortened. The delay is capped at one hour, or at the longest
    /// window of the key's quota where that is longer: no provider needs more.
    ///
    /// # Errors
    /// The reason for which the cool-down is [`Ignored`]; nothing has changed then.
    pub fn apply_cool_down(&self, cool_down: &CoolDown, own: &str) -> Result<Timestamp, Ignored> {
        let (key_pace, key) = (self.key_pace(&cool_down.resource), cool_down.resource.as_str());
        let is_known = |_: &_, state: &KeyState| state.plan().known;
        match () {
            () if cool_down.agent_id == own => return Err(Ignored::Own),
            () if cool_down.retry_after.is_zero() => return Err(Ignored::Zero),
            () if !self.shared.table.peek(key, is_known).unwrap_or(false) => {
                return Err(Ignored::Unknown);
            }
            () => {}
        }
        let oldest = key_pace.pace.map_or(OLDEST, |pace| pace.interval);
        let applied = self.with(key, |state| {
            let now = state.now();
            if cool_down.timestamp.abs_diff(now) > oldest {
                return Err(Ignored::Stale);
            }
            let delay = cool_down.retry_after.min(longest_pause(state));
            if now + delay <= state.cooling_until().max(now) {
                return Err(Ignored::NotLonger);
            }
            let pause = |adapt: &mut Adapt, limits: &mut Limits, now: Timestamp| {
                adapt.pause(limits, delay, key_pace, now)
            };
            Ok(state.adapt_and_record(pause))
        });
        let until = applied.ok_or(Ignored::Unknown)??;
        let agent = Some(cool_down.agent_id.as_str().into());
        let event = || Event::CoolingDown { key: key.into(), until, kind: None, agent };
        self.shared.core.events.announce(event);
        Ok(until)
    }

    /// Starts to hold a key to limits that another program has measured, unless answers to this program
    /// have measured them. `own` is this program's name among the agents.
    ///
    /// # Errors
    /// The reason for which the update is [`Ignored`]; nothing has changed then.
    pub fn apply_learned(&self, update: &LearnedUpdate, own: &str) -> Result<(), Ignored> {
        let key = update.resource.as_str();
        let is_known = |_: &_, state: &KeyState| state.plan().known;
        match () {
            () if !self.shared.core.is_learning() => return Err(Ignored::Off),
            () if update.agent_id == own => return Err(Ignored::Own),
            () if !self.shared.table.peek(key, is_known).unwrap_or(false) => {
                return Err(Ignored::Unknown);
            }
            () => {}
        }
        let taken = self.with(key, |state| {
            let now = state.now();
            if update.timestamp.abs_diff(now) > OLDEST {
                return Err(Ignored::Stale);
            }
            let mut limits = update.limits.clone();
            for limit in &mut limits {
                (limit.measured_at, limit.source) = (now, LearnedFrom::Bus);
            }
            if state.follow_learned(&limits) { Ok(()) } else { Err(Ignored::NotNeeded) }
        });
        taken.ok_or(Ignored::Unknown)?
    }

    pub(super) fn with<T>(&self, key: &str, change: impl FnMut(&mut Locked<'_>) -> T) -> Option<T> {
        self.shared.with(key, self.budget, change)
    }

    /// Returns the pace of reductions, and the part of their spread that this limiter takes for a key.
    pub(super) fn key_pace(&self, key: &str) -> KeyPace {
        let core = &self.shared.core;
        let mut pace = *core.reduction.read();
        if let Some(pace) = &mut pace {
            pace.is_adaptive &= core.is_local();
        }
        KeyPace { pace, spread_part: core.hash(key) & 0xffff }
    }

    pub(super) fn report_reduced(
        &self,
        key: Key,
        capacity: u64,
        reason: &str,
        agent: Option<&str>,
    ) {
        let (reason, agent) = (reason.into(), agent.map(Into::into));
        let event = || Event::Reduced { key, capacity, reason, agent };
        self.shared.core.events.announce(event);
    }

    /// Counts the usage that headers state of a key whose limits were just learned.
    fn count_used(&self, key: &str, readings: &[LimitReading]) {
        if self.shared.core.is_local() {
            self.with(key, |state| state.charge_past(readings));
        }
    }
}

/// Returns the longest time for which another program may pause a key.
fn longest_pause(state: &KeyState) -> Duration {
    let windows = state.plan().rules.iter().map(|rule| rule.limit().window());
    let windows = windows.filter(|window| !window.is_endless());
    windows.max().unwrap_or(Window::HOUR).max(Window::HOUR).as_duration()
}

/// The age up to which a pause is applied without a recovery interval, and a learned limit.
const OLDEST: Duration = Duration::from_secs(30);
