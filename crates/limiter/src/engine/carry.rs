use alloc::vec::Vec;

use super::bucket::State;
use super::rule::Spec;
use super::{Bucket, Rule, Saved, fixed_window, token_bucket};
use crate::timestamp::Timestamp;

/// Times and amounts of usage, oldest first.
pub(crate) type Usage = Vec<(Timestamp, u64)>;

/// Changes of the rule.
impl Bucket {
    /// Converts the bucket to another rule of the same dimension. Usage and held amounts are kept. If only the old
    /// rule holds amounts, held amounts are taken, since their reservations can no longer be settled.
    ///
    /// If the window or the algorithm changes, usage whose time isn't known exactly counts at the latest
    /// time possible. What is known covers at least the last window of the old rule: of a token bucket, the missing
    /// amount and what can have refilled.
    #[must_use]
    pub fn carry(&self, old: &Rule, new: &Rule, now: Timestamp) -> Self {
        let mut bucket = match (&self.0, &old.spec, &new.spec) {
            _ if !new.continues(old) => Self::with_usage(new, &self.usage(old, now), now),
            (State::Token(b), Spec::Token(from), Spec::Token(to)) => {
                Self(State::Token(b.carry(from, to, now)))
            }
            _ => self.clone(),
        };
        bucket.drop_hold(bucket.held());
        bucket.continue_holds(self.held(), old, new, now);
        bucket
    }

    /// Converts the bucket to the same rule with another amount. A token bucket keeps its tokens, up to the
    /// new capacity; a window keeps its usage.
    #[must_use]
    pub fn resize(&self, old: &Rule, new: &Rule, now: Timestamp) -> Self {
        match (&self.0, &old.spec, &new.spec) {
            (State::Token(b), Spec::Token(from), Spec::Token(to)) => {
                Self(State::Token(b.resize(from, to, now)))
            }
            _ => self.carry(old, new, now),
        }
    }

    /// Returns all usage that the bucket knows of, without held amounts, each part at the latest time at which it
    /// can have been used.
    pub(crate) fn usage(&self, rule: &Rule, now: Timestamp) -> Usage {
        let mut usage: Usage = match (&self.0, &rule.spec) {
            (State::Token(b), Spec::Token(s)) => b.usage(s, rule.limit.window().as_nanos(), now),
            (State::Sliding(b), _) => b.known().map(|entry| (entry.at, entry.amount)).collect(),
            (State::Fixed(b), Spec::Fixed(s)) => b.usage(s, now).into(),
            (State::Grid(b), _) => b.usage().into(),
            _ => self.known_usage(rule, now),
        };
        usage.retain(|(_, amount)| *amount > 0);
        usage
    }

    /// Returns the usage that is sure to have happened by these times.
    pub(crate) fn known_usage(&self, rule: &Rule, now: Timestamp) -> Usage {
        let Saved { taken, .. } = self.save(rule, now);
        taken
    }

    /// Creates a bucket with this usage.
    pub(crate) fn with_usage(rule: &Rule, usage: &[(Timestamp, u64)], now: Timestamp) -> Self {
        if let Spec::Fixed(spec) = &rule.spec {
            return Self(State::Fixed(fixed_window::State::with_usage(spec, usage, now)));
        }
        if let Spec::Token(spec) = &rule.spec {
            let window = rule.limit.window().as_nanos();
            return Self(State::Token(token_bucket::State::with_usage(spec, window, usage, now)));
        }
        let mut bucket = Self::new(rule);
        usage.iter().for_each(|&(at, amount)| bucket.take(rule, amount, at.min(now)));
        bucket
    }

    /// Adds the usage of another bucket of the same rule. Its held amounts are taken, since their reservations don't end
    /// here.
    pub(crate) fn merge(&mut self, rule: &Rule, other: &Self, now: Timestamp) {
        let added = other.save(rule, now);
        let Spec::Fixed(spec) = &rule.spec else { return self.absorb(rule, &added, now) };
        // Both windows are open until the later one ends.
        let mut taken = self.save(rule, now).taken;
        taken.extend(added.taken);
        taken.sort_unstable();
        self.0 = State::Fixed(fixed_window::State::with_usage(spec, &taken, now));
    }

    /// Adds the held amount of a bucket that this one replaces: as used, if only the old rule holds amounts.
    pub(crate) fn continue_holds(&mut self, held: u64, old: &Rule, new: &Rule, now: Timestamp) {
        match old.holds() && !new.holds() {
            true => self.take(new, held, now),
            false => self.hold(held),
        }
    }
}
