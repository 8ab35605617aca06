use super::rule::{Rule, Spec};
use super::{Wait, concurrency, fixed_window, grid_window, sliding_window, token_bucket};
use core::time::Duration;

use crate::timestamp::{Timestamp, nanos};

/// The state of one [`Rule`]: 24 bytes, and for a sliding window the log it points to, for a clock's
/// or calendar's 24 more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Token(token_bucket::State),
    Sliding(Box<sliding_window::Log>),
    Fixed(fixed_window::State),
    Grid(Box<grid_window::State>),
    Concurrency(concurrency::State),
}

/// What a bucket looks like at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// What counts against the limit, in-flight reservations left out; rounded up.
    pub used: u64,
    /// What is reserved by requests in flight.
    pub held: u64,
    /// What a request could still take now, margin left out; rounded down.
    pub available: u64,
    /// When nothing of the limit is used any more, if no more requests are sent and none is in
    /// flight.
    pub fresh_at: Timestamp,
}

/// A bucket's state as it is kept across restarts: amounts and times, whatever the algorithm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    /// The amounts taken and when, oldest first. A token bucket is one
    /// entry: what is missing from it, at the time of the snapshot. A fixed window is one entry at
    /// the window's start, a clock's or calendar's one at the time of its last request.
    pub taken: Vec<(Timestamp, u64)>,
    /// What requests in flight had reserved.
    pub held: u64,
}

impl Bucket {
    /// A fresh bucket: nothing used, nothing held.
    pub fn new(rule: &Rule) -> Self {
        Self(match rule.spec {
            Spec::Token(_) => State::Token(token_bucket::State::default()),
            Spec::Sliding(_) => State::Sliding(Box::default()),
            Spec::Fixed(_) => State::Fixed(fixed_window::State::default()),
            Spec::Grid(_) => State::Grid(Box::default()),
            Spec::Concurrency(_) => State::Concurrency(concurrency::State::default()),
        })
    }

    /// The bucket's figures at `now`.
    pub fn level(&self, rule: &Rule, now: Timestamp) -> Level {
        let limit = rule.limit.amount();
        match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => Level {
                used: b.used(s, now),
                held: b.held(),
                available: b.available(s, now),
                fresh_at: b.full_at(),
            },
            (State::Sliding(b), Spec::Sliding(s)) => {
                Level::of(limit, b.used(s, now), b.held(), b.empty_at(s))
            }
            (State::Fixed(b), Spec::Fixed(s)) => Level::of(limit, b.used(s, now), 0, b.fresh_at(s)),
            (State::Grid(b), Spec::Grid(s)) => {
                Level::of(limit, b.used(s, now), b.held(), b.fresh_at(s))
            }
            (State::Concurrency(b), _) => Level::of(limit, 0, b.in_flight(), now),
            _ => Level::of(limit, 0, 0, now),
        }
    }

    /// Whether the bucket is as a new one would be.
    pub fn is_fresh(&self, rule: &Rule, now: Timestamp) -> bool {
        if let (State::Token(b), Spec::Token(s)) = (&self.0, &rule.spec) {
            return b.is_fresh(s, now);
        }
        let level = self.level(rule, now);
        level.used == 0 && level.held == 0
    }

    /// Moves every time in the bucket back by as much as the clock was set back.
    pub fn rebase(&mut self, back: Duration) {
        let back = nanos(back);
        match &mut self.0 {
            State::Token(b) => b.rebase(back),
            State::Sliding(b) => b.rebase(back),
            State::Fixed(b) => b.rebase(back),
            State::Grid(b) => b.rebase(back),
            State::Concurrency(_) => {}
        }
    }

    /// The state to keep across a restart or a change of the rule.
    pub fn save(&self, rule: &Rule, now: Timestamp) -> Saved {
        let level = self.level(rule, now);
        let taken = match (&self.0, &rule.spec) {
            (State::Sliding(b), Spec::Sliding(s)) => {
                b.live(s, now).map(|e| (e.at, e.amount)).collect()
            }
            _ if level.used == 0 => Vec::new(),
            (State::Fixed(b), _) => vec![(b.start(), level.used)],
            (State::Grid(b), _) => vec![(b.at(), level.used)],
            _ => vec![(now, level.used)],
        };
        Saved { taken, held: level.held }
    }

    /// Takes a saved state on top of this one; times ahead of `now` count as now. What was held is
    /// taken too: those requests left, and nobody will say what they really took.
    pub fn absorb(&mut self, rule: &Rule, saved: &Saved, now: Timestamp) {
        for &(at, amount) in &saved.taken {
            if !rule.is_past(at, now) {
                self.take(rule, amount, at.min(now));
            }
        }
        self.take(rule, saved.held, now);
    }

    /// This bucket under another rule of the same dimension: what was used stays used, what is held
    /// stays held. Where only one of the rules holds, what was held is taken: whoever held it can no
    /// longer say what it was.
    #[must_use]
    pub fn carry(&self, old: &Rule, new: &Rule, now: Timestamp) -> Self {
        match (&self.0, &old.spec, &new.spec) {
            // With how much later than ours the provider's window may have started.
            (State::Fixed(_), _, Spec::Fixed(_)) => return self.clone(),
            (State::Token(b), Spec::Token(from), Spec::Token(to)) if old.holds() == new.holds() => {
                return Self(State::Token(b.carry(from, to, now)));
            }
            _ => {}
        }
        let Saved { taken, held } = self.save(old, now);
        let mut bucket = Self::new(new);
        bucket.absorb(new, &Saved { taken, held: 0 }, now);
        match new.holds() {
            true => bucket.hold(held),
            false => bucket.take(new, held, now),
        }
        bucket
    }

    /// This bucket under the same rule of another amount: what a token bucket has stays in it, as far
    /// as there is room, and what was used in a window stays used.
    #[must_use]
    pub fn resize(&self, old: &Rule, new: &Rule, now: Timestamp) -> Self {
        match (&self.0, &old.spec, &new.spec) {
            (State::Token(b), Spec::Token(from), Spec::Token(to)) => {
                Self(State::Token(b.resize(from, to, now)))
            }
            _ => self.carry(old, new, now),
        }
    }

    /// This bucket with nothing used: what is held stays held.
    #[must_use]
    pub fn cleared(&self, rule: &Rule) -> Self {
        let mut bucket = Self::new(rule);
        bucket.hold(self.held());
        bucket
    }

    /// What the provider has left at least, its own figure, if nobody else uses it and everything
    /// that is held takes no more than was reserved; rounded down. The margin isn't taken off.
    pub fn left(&self, rule: &Rule, now: Timestamp) -> u64 {
        let level = self.level(rule, now);
        rule.capacity().saturating_sub(level.used).saturating_sub(level.held)
    }

    /// By how much the provider may have less left than [`left`](Self::left) says, though nobody else
    /// uses it: half of the margin, and what may be taken beyond what is held.
    pub fn slack(&self, rule: &Rule) -> u64 {
        match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => s.slack().saturating_add(b.held()),
            (State::Sliding(b), _) => b.held(),
            (State::Grid(b), _) => b.held(),
            _ => 0,
        }
    }

    /// Takes an amount, whether it is there or not.
    pub fn charge(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        self.take(rule, amount, now);
    }

    /// Leaves nothing available at `at`: a token bucket refills from there. What is in a window says
    /// when it has room, and stays.
    pub fn drain(&mut self, rule: &Rule, at: Timestamp) {
        if let (State::Token(b), Spec::Token(s)) = (&mut self.0, &rule.spec) {
            let available = b.available(s, at);
            if available > 0 {
                b.take(s, available, at);
            }
        }
    }

    /// What is held.
    pub fn held(&self) -> u64 {
        match &self.0 {
            State::Token(b) => b.held(),
            State::Sliding(b) => b.held(),
            State::Grid(b) => b.held(),
            State::Concurrency(b) => b.in_flight(),
            State::Fixed(_) => 0,
        }
    }

    /// Holds an amount, whether it is there or not. A window that starts at its first use holds
    /// nothing.
    #[inline]
    pub fn hold(&mut self, amount: u64) {
        match &mut self.0 {
            State::Token(b) => b.hold(amount),
            State::Sliding(b) => b.hold(amount),
            State::Grid(b) => b.hold(amount),
            State::Concurrency(b) => b.enter(amount),
            State::Fixed(_) => {}
        }
    }

    /// Holds so much less.
    #[inline]
    pub fn drop_hold(&mut self, amount: u64) {
        match &mut self.0 {
            State::Token(b) => b.drop_hold(amount),
            State::Sliding(b) => b.drop_hold(amount),
            State::Grid(b) => b.drop_hold(amount),
            State::Concurrency(b) => b.leave(amount),
            State::Fixed(_) => {}
        }
    }

    /// Takes what was taken at `at`, by now in another bucket of the same limit; less than nothing is
    /// given back, as far as that is safe. Times ahead of `now` count as now.
    pub fn follow(&mut self, rule: &Rule, (at, amount): (Timestamp, i64), now: Timestamp) {
        let at = at.min(now);
        match (&mut self.0, &rule.spec, amount.unsigned_abs()) {
            _ if rule.is_past(at, now) => {}
            (.., given) if amount < 0 => self.give_back(rule, given, at, now),
            (State::Fixed(b), Spec::Fixed(s), taken) if taken > 0 => b.join(s, taken, at),
            (.., taken) => self.take(rule, taken, at),
        }
    }

    /// The time by which to keep what was taken at `at`, so that taken again at these times it makes
    /// the same bucket: of a window that starts at its first use, that is when it started.
    #[inline]
    pub fn kept_at(&self, at: Timestamp) -> Timestamp {
        match &self.0 {
            State::Fixed(b) if b.start() <= at => b.start(),
            _ => at,
        }
    }

    /// Whether what was taken at `at` was taken in an earlier window than the one that counts now.
    #[inline]
    pub fn is_past(&self, at: Timestamp) -> bool {
        matches!(&self.0, State::Fixed(b) if b.start() > at)
    }

    #[inline]
    pub(super) fn fits(&self, rule: &Rule, cost: u64, now: Timestamp) -> bool {
        match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => b.fits(s, cost, now),
            _ => self.fits_otherwise(rule, cost, now),
        }
    }

    #[inline(never)]
    fn fits_otherwise(&self, rule: &Rule, cost: u64, now: Timestamp) -> bool {
        cost <= rule.capacity() && self.check(rule, cost, now).is_ok()
    }

    pub(super) fn check(&self, rule: &Rule, cost: u64, now: Timestamp) -> Result<(), Wait> {
        let cost = rule.needed(cost);
        match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => b.check(s, cost, now),
            (State::Sliding(b), Spec::Sliding(s)) => b.check(s, cost, now),
            (State::Fixed(b), Spec::Fixed(s)) => b.check(s, cost, now),
            (State::Grid(b), Spec::Grid(s)) => b.check(s, cost, now),
            (State::Concurrency(b), Spec::Concurrency(s)) => b.check(s),
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn reserve(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        match (&mut self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) if !rule.holds() => b.take(s, amount, now),
            (State::Token(b), _) => b.hold(amount),
            _ => self.reserve_otherwise(rule, amount, now),
        }
    }

    #[inline(never)]
    fn reserve_otherwise(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        if rule.holds() {
            self.hold(amount);
        } else {
            self.take(rule, amount, now);
        }
    }

    #[inline]
    pub(super) fn take(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        match (&mut self.0, &rule.spec) {
            _ if amount == 0 => {}
            (State::Token(b), Spec::Token(s)) => b.take(s, amount, now),
            (State::Sliding(b), Spec::Sliding(s)) => b.take(s, amount, now),
            (State::Fixed(b), Spec::Fixed(s)) => b.take(s, amount, now),
            (State::Grid(b), Spec::Grid(s)) => b.take(s, amount, now),
            _ => {}
        }
    }

    /// Corrects an amount that was taken at `sent`. Less than was taken is given back only as far
    /// as that is safe; more becomes debt.
    pub(super) fn correct(
        &mut self,
        rule: &Rule,
        sent: Timestamp,
        taken: u64,
        actual: u64,
        now: Timestamp,
    ) {
        match (&mut self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) if actual > taken => b.take(s, actual - taken, now),
            (State::Token(b), Spec::Token(s)) => b.give_back(s, taken - actual, sent, now),
            (State::Sliding(b), Spec::Sliding(s)) => b.correct(s, sent, taken, actual, now),
            // Nothing was taken for it, so that its window may not have started.
            (State::Fixed(b), Spec::Fixed(s)) if taken == 0 => b.join(s, actual, sent),
            (State::Fixed(b), _) => b.correct(sent, taken, actual),
            (State::Grid(b), Spec::Grid(s)) => b.correct(s, sent, taken, actual),
            _ => {}
        }
    }

    /// Undoes an amount that was taken at `sent` for a request that never left.
    pub(super) fn give_back(&mut self, rule: &Rule, taken: u64, sent: Timestamp, now: Timestamp) {
        match (&mut self.0, &rule.spec) {
            (State::Fixed(b), Spec::Fixed(s)) => b.give_back(s, taken, sent, now),
            _ => self.correct(rule, sent, taken, 0, now),
        }
    }
}

impl Level {
    fn of(limit: u64, used: u64, held: u64, fresh_at: Timestamp) -> Self {
        let available = limit.saturating_sub(used).saturating_sub(held);
        Self { used, held, available, fresh_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_24_bytes() {
        assert_eq!(size_of::<Bucket>(), 24);
    }
}
