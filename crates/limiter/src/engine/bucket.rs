use super::rule::{Rule, Spec};
use super::{Wait, concurrency, fixed_window, grid_window, sliding_window, token_bucket};
use core::time::Duration;

use crate::timestamp::{Timestamp, nanos};

/// The state of one [`Rule`]. It has 24 bytes, and in addition the log of a sliding window, or 40 bytes for a
/// window of a clock or calendar.
///
/// Under a rule of another algorithm it is full, and admits nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket(pub(super) State);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Token(token_bucket::State),
    Sliding(Box<sliding_window::Log>),
    Fixed(fixed_window::State),
    Grid(Box<grid_window::State>),
    Concurrency(concurrency::State),
}

/// The amounts of a bucket at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// The usage that counts against the limit, without reservations in flight; rounded up.
    pub used: u64,
    /// The amount that requests in flight hold.
    pub held: u64,
    /// The amount that a request can take now, without the margin; rounded down.
    pub available: u64,
    /// The time at which the usage is zero, if no further request is sent and none is in flight.
    pub fresh_at: Timestamp,
}

/// The state of a bucket across restarts: amounts and times, independent of the algorithm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    /// The times and amounts of usage, oldest first. A token bucket has one entry: the missing amount at
    /// the time of the snapshot. A fixed window has one entry at its start, a window of a clock or
    /// calendar one at its last request.
    pub taken: Vec<(Timestamp, u64)>,
    /// The amount that requests in flight held.
    pub held: u64,
}

impl Bucket {
    /// Creates a bucket with nothing used and nothing held.
    pub fn new(rule: &Rule) -> Self {
        Self(match rule.spec {
            Spec::Token(_) => State::Token(token_bucket::State::default()),
            Spec::Sliding(_) => State::Sliding(Box::default()),
            Spec::Fixed(_) => State::Fixed(fixed_window::State::default()),
            Spec::Grid(_) => State::Grid(Box::default()),
            Spec::Concurrency(_) => State::Concurrency(concurrency::State::default()),
        })
    }

    /// Returns the amounts of the bucket at `now`.
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
            (State::Concurrency(b), Spec::Concurrency(_)) => {
                Level::of(limit, 0, b.in_flight(), now)
            }
            _ => Level::of(limit, rule.capacity(), 0, Timestamp::from_nanos(u64::MAX)),
        }
    }

    /// Returns `true` if the bucket is equivalent to a new one.
    pub fn is_fresh(&self, rule: &Rule, now: Timestamp) -> bool {
        if let (State::Token(b), Spec::Token(s)) = (&self.0, &rule.spec) {
            return b.is_fresh(s, now);
        }
        let level = self.level(rule, now);
        level.used == 0 && level.held == 0
    }

    /// Moves all times in the bucket back, after the clock was set back by this much.
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

    /// Returns the state to keep across a restart or a change of the rule.
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

    /// Adds a saved state to this one. Times after `now` count as now. Held amounts are taken, since those
    /// requests were sent and their actual usage will not be reported.
    pub fn absorb(&mut self, rule: &Rule, saved: &Saved, now: Timestamp) {
        for &(at, amount) in &saved.taken {
            if !rule.is_past(at, now) {
                self.take(rule, amount, at.min(now));
            }
        }
        self.take(rule, saved.held, now);
    }

    /// Returns the bucket without its usage. Held amounts are kept.
    #[must_use]
    pub fn cleared(&self, rule: &Rule) -> Self {
        let mut bucket = Self::new(rule);
        bucket.hold(self.held());
        bucket
    }

    /// Returns the bucket as if all requests in flight had come back without a charge.
    #[must_use]
    pub(crate) fn without_holds(&self) -> Self {
        let mut bucket = self.clone();
        bucket.drop_hold(bucket.held());
        bucket
    }

    /// Returns the least amount that the provider has left, as it would report it, if no other client uses
    /// the limit and no request in flight exceeds its reservation; rounded down. The margin isn't
    /// subtracted.
    pub fn left(&self, rule: &Rule, now: Timestamp) -> u64 {
        let level = self.level(rule, now);
        rule.capacity().saturating_sub(level.used).saturating_sub(level.held)
    }

    /// Returns the amount by which the provider's remaining amount can be below [`left`](Self::left) without
    /// another client: half of the margin, and the excess of requests over their reservations.
    pub fn slack(&self, rule: &Rule) -> u64 {
        match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => s.slack().saturating_add(b.held()),
            (State::Sliding(b), _) => b.held(),
            (State::Grid(b), _) => b.held(),
            _ => 0,
        }
    }

    /// Takes an amount without a check.
    pub fn charge(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        self.take(rule, amount, now);
    }

    /// Charges usage of others until now. A sliding window takes it as spread over its span.
    pub fn charge_past(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        match (&mut self.0, &rule.spec) {
            (State::Sliding(b), Spec::Sliding(s)) => b.take_past(s, amount, now),
            _ => self.take(rule, amount, now),
        }
    }

    /// Removes the available tokens of a token bucket at `at`; it refills from then on. Windows are
    /// unchanged, since their usage determines when capacity returns.
    pub fn drain(&mut self, rule: &Rule, at: Timestamp) {
        if let (State::Token(b), Spec::Token(s)) = (&mut self.0, &rule.spec) {
            let available = b.available(s, at);
            if available > 0 {
                b.take(s, available, at);
            }
        }
    }

    /// Returns the held amount.
    pub fn held(&self) -> u64 {
        match &self.0 {
            State::Token(b) => b.held(),
            State::Sliding(b) => b.held(),
            State::Grid(b) => b.held(),
            State::Concurrency(b) => b.in_flight(),
            State::Fixed(_) => 0,
        }
    }

    /// Holds an amount without a check. A window that starts at its first use holds nothing.
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

    /// Reduces the held amount.
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

    /// Applies a change that another bucket of the same limit recorded at `at`. A negative amount is
    /// refunded as far as that is safe. Times after `now` count as now.
    pub fn apply(&mut self, rule: &Rule, at: Timestamp, amount: i64, now: Timestamp) {
        let at = at.min(now);
        match (&mut self.0, &rule.spec, amount.unsigned_abs()) {
            _ if rule.is_past(at, now) => {}
            (.., given) if amount < 0 => self.refund(rule, given, at, now),
            (State::Fixed(b), Spec::Fixed(s), taken) if taken > 0 => b.join(s, taken, at),
            (.., taken) => self.take(rule, taken, at),
        }
    }

    /// Returns the time to record for usage at `at`, so that a bucket restored from the records is the same:
    /// for a window that starts at its first use, its start.
    #[inline]
    pub fn record_time(&self, at: Timestamp) -> Timestamp {
        match &self.0 {
            State::Fixed(b) if b.start() <= at => b.start(),
            _ => at,
        }
    }

    /// Returns `true` if `at` lies in a window before the current one.
    #[inline]
    pub fn is_past(&self, at: Timestamp) -> bool {
        matches!(&self.0, State::Fixed(b) if b.start() > at)
    }

    #[inline]
    pub(super) fn fits(&self, rule: &Rule, cost: u64, now: Timestamp) -> bool {
        match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => b.fits(s, cost, now),
            _ => self.fits_slow_path(rule, cost, now),
        }
    }

    #[inline(never)]
    fn fits_slow_path(&self, rule: &Rule, cost: u64, now: Timestamp) -> bool {
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
            _ => Err(Wait::Never),
        }
    }

    #[inline]
    pub(super) fn reserve(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
        match (&mut self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) if !rule.holds() => b.take(s, amount, now),
            (State::Token(b), _) => b.hold(amount),
            _ => self.reserve_slow_path(rule, amount, now),
        }
    }

    #[inline(never)]
    fn reserve_slow_path(&mut self, rule: &Rule, amount: u64, now: Timestamp) {
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

    /// Corrects an amount that was taken at `sent`. An excess is refunded only as far as that is safe; a
    /// shortfall becomes debt.
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
            (State::Token(b), Spec::Token(s)) => b.refund(s, taken - actual, sent, now),
            (State::Sliding(b), Spec::Sliding(s)) => b.correct(s, sent, taken, actual, now),
            // Nothing was taken for the request, so its window may not have started.
            (State::Fixed(b), Spec::Fixed(s)) if taken == 0 => b.join(s, actual, sent),
            (State::Fixed(b), _) => b.correct(sent, taken, actual),
            (State::Grid(b), Spec::Grid(s)) => b.correct(s, sent, taken, actual),
            _ => {}
        }
    }

    /// Refunds an amount that was taken at `sent` for a request that was never sent.
    pub(super) fn refund(&mut self, rule: &Rule, taken: u64, sent: Timestamp, now: Timestamp) {
        match (&mut self.0, &rule.spec) {
            (State::Fixed(b), Spec::Fixed(s)) => b.refund(s, taken, sent, now),
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
    fn bucket_has_24_bytes() {
        assert_eq!(size_of::<Bucket>(), 24);
    }
}
