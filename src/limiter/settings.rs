use super::builder::UnknownKey;
use super::error::BuildError;
use super::limiter::Limiter;
use super::line::Wakers;
use super::reduction::{Pace, Reduction};
use super::shard::{Core, Shard};
use super::sync::atomic::Ordering;

/// What a [`Builder`](super::Builder) sets and a limiter can change while it runs, in use at once.
impl Limiter {
    pub(super) fn set_unknown_key(&self, policy: UnknownKey) {
        let version = self.core.version();
        self.core.quotas.write().set_unknown(policy, version);
        self.shards.iter().for_each(|shard| shard.replan(None));
    }

    pub(super) fn set_reduction(&self, reduction: &Reduction) -> Result<(), BuildError> {
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
