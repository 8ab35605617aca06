use std::task::Waker;

use super::event::Event;
use super::limiter::Limiter;
use super::permit::Permit;
use crate::quota::Cost;

/// What is left of a [`Permit`] that keeps nothing until it ends: enough to give back what it took,
/// later, and small enough to be handed to whoever may ask for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// When the permit was granted, in nanoseconds since the epoch.
    pub granted_at: u64,
    /// The version of its key's limits at that time.
    pub version: u32,
    /// Where its key was kept.
    pub slot: u32,
    /// Which of the keys that were kept there it was.
    pub generation: u32,
}

impl Permit {
    /// Lets go of a permit: what it took stays taken, and only the ticket
    /// can return it, by `limiter.state().give_back(..)`.
    ///
    /// ```
    /// use tollgate::{Cost, Limiter, Quota};
    /// let limiter = Limiter::builder().quota("k", Quota::new().rpm(1)).build()?;
    /// let ticket = limiter.try_acquire("k", &Cost::new()).unwrap().into_ticket().unwrap();
    /// assert!(limiter.try_acquire("k", &Cost::new()).is_err());
    /// assert!(limiter.state().give_back("k", &Cost::new(), ticket));
    /// assert!(limiter.try_acquire("k", &Cost::new()).is_ok());
    /// # Ok::<(), tollgate::limiter::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// The permit, where the limiter has something to do when it ends: it holds something (requests in
    /// flight, tokens that are charged at the end), is one of several keys, or its limits are kept by a
    /// [`Backend`](super::Backend).
    pub fn into_ticket(self) -> Result<Ticket, Self> {
        self.ticket().ok_or(self)
    }
}

impl Limiter {
    pub(super) fn give_back(&self, key: &str, cost: &Cost, ticket: Ticket) -> bool {
        let Some(place) = self.find(key) else { return false };
        let (mut keys, now) = place.shard.lock();
        let slot = &mut keys.slots[place.slot];
        let there = (place.slot, slot.generation());
        if there != (ticket.slot, ticket.generation) || there.1 != place.generation {
            return false;
        }
        slot.recover(now, &self.core);
        let cost = &*slot.plan.clip_guesses(cost);
        let nothing = Cost::new().requests(0);
        slot.end((ticket.version, ticket.granted_at, cost), Some(&nothing), now);
        slot.note(now);
        let next = slot.changed();
        drop(keys);
        next.into_iter().for_each(Waker::wake);
        self.core.events.send(|| Event::Settled {
            key: key.into(),
            reserved: cost.clone(),
            charged: None,
        });
        true
    }
}
