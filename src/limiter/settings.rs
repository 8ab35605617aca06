use super::builder::UnknownKey;
use super::error::BuildError;
use super::limiter::Limiter;
use super::line::Wakers;
use super::reduction::{Pace, Reduction};
use super::shard::{Core, Shard};
use super::sync::atomic::Ordering;

/// What a [`Builder`](super::Builder) sets and a limiter can change while it runs, in use at once.
impl Limiter {
    /// What happens to a key that no quota names; to those that are in use too. Who waits for one
    /// that isn't limited any more gets [`AcquireError::Removed`](super::AcquireError::Removed), as
    /// if its quota had been removed.
    pub fn set_unknown_key(&self, policy: UnknownKey) {
        let version = self.core.version();
        self.core.quotas.write().set_unknown(policy, version);
        self.shards.iter().for_each(|shard| shard.replan(None));
    }

    /// How far a key is reduced when its provider refuses a request, and how it recovers. Keys that
    /// are reduced recover at the new pace; without a reduction they have their whole quota again.
    ///
    /// # Errors
    /// [`BuildError::OutOfRange`] for a reduction that is none; nothing has changed then.
    pub fn set_reduction(&self, reduction: &Reduction) -> Result<(), BuildError> {
        let pace = reduction.pace()?;
        *self.core.reduction.write() = pace;
        self.shards.iter().for_each(|shard| shard.follow_pace(pace));
        Ok(())
    }

    /// How many may wait for one key. Those who wait already may go on.
    pub fn set_max_waiting(&self, requests: usize) {
        self.core.max_waiting.store(requests, Ordering::Relaxed);
    }
}

impl Core {
    pub(super) fn max_waiting(&self) -> usize {
        self.max_waiting.load(Ordering::Relaxed)
    }
}

impl Shard {
    fn follow_pace(&self, pace: Option<Pace>) {
        let (mut keys, now) = self.lock();
        let mut wakers = Wakers::default();
        for number in keys.numbers() {
            let slot = &mut keys.slots[number];
            slot.recover(now, &self.core);
            if slot.follow_pace(pace, now) {
                wakers.wake(slot.everyone());
            }
        }
        drop(keys);
        wakers.ring();
        self.core.events.flush();
    }
}
