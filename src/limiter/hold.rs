use std::time::Duration;

use super::clock::nanos;
use super::limiter::Limiter;
use super::refusal::RateLimited;
use super::slot::Slot;

/// A cool-down that may be taken back: when it ends, and what it took the place of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    before: u64,
    until: u64,
}

impl Limiter {
    pub(super) fn hold(&self, key: &str, delay: Duration) -> Option<Hold> {
        let held = self.with(key, |slot, now| {
            let (line, until) = (slot.line(), now.saturating_add(nanos(delay)));
            let before = line.cooling_until;
            line.cooling_until = before.max(until);
            (before < until).then(|| (Hold { before, until }, slot.told().2))
        });
        let (hold, wakers) = held.flatten()?;
        wakers.ring();
        Some(hold)
    }

    pub(super) fn let_go(&self, key: &str, hold: Hold) {
        let wakers = self.with(key, |slot, now| {
            slot.take_back(hold);
            let (_, _, wakers) = slot.told();
            slot.tidy(now);
            wakers
        });
        if let Some(wakers) = wakers {
            wakers.ring();
        }
    }

    pub(super) fn refused_in_place_of(&self, hold: Option<Hold>, key: &str, refusal: &RateLimited) {
        self.refused(key, refusal, |slot| {
            if let Some(hold) = hold {
                slot.take_back(hold);
            }
        });
    }
}

impl Slot {
    /// Unless the key cools down for longer by now.
    fn take_back(&mut self, hold: Hold) {
        if let Some(line) = self.there().filter(|line| line.cooling_until == hold.until) {
            line.cooling_until = hold.before;
        }
    }
}
