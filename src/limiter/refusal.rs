use std::time::Duration;

use compact_str::CompactString;

use super::clock::nanos;
use super::event::Event;
use super::limiter::Limiter;
use super::line::Wakers;
use super::reduced::is_rate;
use super::reduction::Pace;
use super::shard::hash_of;
use super::slot::Slot;
use crate::quota::{Dimension, Limit};

/// A refusal by the provider, as far as it says what was short and when to come back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimited {
    /// How long the provider asks to wait. Where it doesn't say: a second, and twice as long each
    /// time that a key is refused again before it has recovered by a step, up to 64 seconds; a minute
    /// until a limit has reset.
    pub retry_after: Option<Duration>,
    /// When the request was sent, in nanoseconds since the epoch: that of its permit
    /// ([`granted_at`](super::Permit::granted_at)). Ten seconds ago where it isn't known.
    pub sent_at: Option<u64>,
    /// What was short, where the provider names it.
    pub dimension: Option<Dimension>,
    /// Whether it comes of an amount per day, or of another long window, that is used up
    /// ([`Class::UntilReset`](crate::provider::Class::UntilReset)).
    pub until_reset: bool,
}

impl RateLimited {
    /// A refusal that asks to wait so long.
    pub fn new(retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::default() }
    }

    /// The refused request was sent then, in nanoseconds since the epoch.
    #[must_use]
    pub fn sent_at(self, time: u64) -> Self {
        Self { sent_at: Some(time), ..self }
    }

    /// This is what was short.
    #[must_use]
    pub fn dimension(self, dimension: Dimension) -> Self {
        Self { dimension: Some(dimension), ..self }
    }

    /// It comes of an amount per day, or of another long window, that is used up.
    #[must_use]
    pub fn until_reset(self) -> Self {
        Self { until_reset: true, ..self }
    }

    /// How long to wait, in nanoseconds, if the key was refused so often before.
    fn delay(&self, before: u32) -> u64 {
        let unsaid = match self.until_reset {
            true => UNTIL_RESET,
            false => DEFAULT_DELAY * (1 << before.min(LONGEST_GROWTH)),
        };
        nanos(self.retry_after.unwrap_or(unsaid))
    }
}

/// What a refusal has changed, to be told without the lock.
struct Changed {
    key: CompactString,
    until: u64,
    /// The capacity that is left, where it was reduced.
    reduced: Option<u64>,
    wakers: Wakers,
}

impl Limiter {
    pub(super) fn on_rate_limited(&self, key: &str, refusal: &RateLimited) {
        self.refused(key, refusal, |_| {});
    }

    /// The same, with a change to the key right before.
    pub(super) fn refused(&self, key: &str, refusal: &RateLimited, before: impl Fn(&mut Slot)) {
        let (pace, part) = (*self.core.reduction.read(), hash_of(&self.core, key) & 0xffff);
        let changed = self.with(key, |slot, now| {
            before(slot);
            slot.refuse(refusal, (pace, part), now)
        });
        let Some(Changed { key: reduced_key, until, reduced, wakers }) = changed else { return };
        wakers.ring();
        self.core.events.announce(|| Event::CoolingDown { key: key.into(), until, agent: None });
        if let Some(capacity) = reduced {
            self.reduced(reduced_key, capacity, ("refused by the provider", None));
        }
    }

    pub(super) fn announce_reduced(&self, key: &str, reason: &str) -> bool {
        let Some(pace) = *self.core.reduction.read() else { return false };
        let reduced = self.with(key, |slot, now| {
            let again = slot.belongs_to_last(now.saturating_sub(LATENCY));
            let amount = |limit: &Limit| half(limit, pace, None);
            (!again && slot.lower(pace, now, amount)).then(|| slot.told())
        });
        let Some((key, capacity, wakers)) = reduced.flatten() else { return false };
        wakers.ring();
        self.reduced(key, capacity, (reason, None));
        true
    }

    pub(super) fn reduced(
        &self,
        key: CompactString,
        capacity: u64,
        (reason, agent): (&str, Option<&str>),
    ) {
        let (reason, agent) = (reason.into(), agent.map(Into::into));
        self.core.events.announce(|| Event::Reduced { key, capacity, reason, agent });
    }
}

impl Slot {
    fn refuse(
        &mut self,
        refusal: &RateLimited,
        (pace, part): (Option<Pace>, u64),
        now: u64,
    ) -> Changed {
        let again = self.belongs_to_last(refusal.sent_at.unwrap_or(now.saturating_sub(LATENCY)));
        let before = self.reduced().map_or(0, |r| r.times.saturating_sub(u32::from(again)));
        let delay = refusal.delay(before);
        let until = self.cool(delay, (pace, part), now);
        let reduced = pace
            .filter(|_| !refusal.until_reset)
            .is_some_and(|pace| self.refuse_rates(refusal, (pace, again), (now, until)));
        // Some may not make their deadlines any more.
        let (key, capacity, wakers) = self.told();
        Changed { key, until, reduced: reduced.then_some(capacity), wakers }
    }

    fn refuse_rates(
        &mut self,
        refusal: &RateLimited,
        (pace, again): (Pace, bool),
        (now, until): (u64, u64),
    ) -> bool {
        let limits = |named: &Dimension| {
            let mut rates = self.plan.rules.iter().filter(|rule| is_rate(rule.limit()));
            rates.any(|rule| rule.dimension() == named)
        };
        let named = refusal.dimension.as_ref().filter(|named| limits(named));
        let reduced = !again && self.lower(pace, now, |limit| half(limit, pace, named));
        self.drain(named, until);
        reduced
    }

    /// Sends nothing for so long, in nanoseconds, and for its part of the spread, in 65,536ths; says
    /// until when.
    pub(super) fn cool(&mut self, delay: u64, (pace, part): (Option<Pace>, u64), now: u64) -> u64 {
        let spread = pace.map_or(0, |pace| (pace.spread.min(delay / 8) >> 16).saturating_mul(part));
        let line = self.line();
        line.cooling_until =
            line.cooling_until.max(now.saturating_add(delay).saturating_add(spread));
        let until = line.cooling_until;
        self.book_cooling(until);
        until
    }

    /// The provider's buckets are empty, those of one dimension or all: so are ours at the end of the
    /// cool-down, after which it recovers.
    pub(super) fn drain(&mut self, named: Option<&Dimension>, until: u64) {
        if let Some(reduced) = self.line().reduced.as_deref_mut() {
            reduced.recover_after(until);
        }
        for (rule, bucket) in self.plan.rules.iter().zip(&mut self.buckets) {
            if is_rate(rule.limit()) && named.is_none_or(|named| rule.dimension() == named) {
                bucket.drain(rule, until);
            }
        }
    }

    /// Whether a refusal of a request that was sent then has been answered by the last reduction.
    pub(super) fn belongs_to_last(&self, sent_at: u64) -> bool {
        self.reduced().is_some_and(|reduced| sent_at <= reduced.reduced_at)
    }

    /// What to tell of a reduction, and whom.
    pub(super) fn told(&self) -> (CompactString, u64, Wakers) {
        let mut wakers = Wakers::default();
        wakers.wake(self.seen().into_iter().flat_map(|line| line.queue.everyone()));
        (self.key.clone(), self.capacity(), wakers)
    }
}

/// What is left of a limit.
fn half(limit: &Limit, pace: Pace, named: Option<&Dimension>) -> u64 {
    let hit = is_rate(limit) && named.is_none_or(|named| limit.dimension() == named);
    if hit { pace.reduce(limit.amount()) } else { limit.amount() }
}

const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// How often that is doubled, at most.
const LONGEST_GROWTH: u32 = 6;

/// What a refusal that names no time is taken to ask for where a long window is used up.
const UNTIL_RESET: Duration = Duration::from_secs(60);

/// How long ago a request is taken to have been sent, in nanoseconds, where that isn't said.
const LATENCY: u64 = 10_000_000_000;
