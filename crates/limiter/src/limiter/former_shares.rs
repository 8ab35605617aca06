use super::key_state::KeyState;
use crate::key::limits::Limits;
use crate::quota::Key;
use crate::sync::Mutex;
use crate::timestamp::Timestamp;

/// The usage of quotas that keys have shared and share no longer. It isn't known which of them used it, so that each
/// key counts all of it.
#[derive(Debug, Default)]
pub(super) struct FormerShares(Mutex<Vec<FormerShare>>);

#[derive(Debug)]
struct FormerShare {
    /// The name of the quota.
    name: Key,
    limits: Limits,
}

impl FormerShares {
    /// Adds the usage of a quota, instead of what was known of it before.
    pub(super) fn add(&self, name: Key, limits: Limits, now: Timestamp) {
        let mut all = self.0.lock();
        all.retain(|former| former.name != name && !former.limits.is_fresh(now));
        all.push(FormerShare { name, limits });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Forgets all usage, after a reset of all keys.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Adds the usage of the quota of this name to a key that is made.
    pub(super) fn pass_on(&self, name: &Key, state: &mut KeyState) {
        let all = self.0.lock();
        all.iter()
            .filter(|former| former.name == *name)
            .for_each(|former| state.merge(&former.limits));
    }
}
