use std::sync::Arc;

use super::key_state::KeyState;
use super::state::LimiterState;
use crate::backend::{Backend, Reservation};
use crate::quota::Key;

/// State that a [`Backend`] may keep.
impl LimiterState<'_> {
    /// Asks the [`Backend`] for the usage of these keys, so that decisions and statistics are as of now.
    /// Returns when it has answered, or after its [`patience`](Backend::patience):
    /// [`KeyStats::as_of`](super::KeyStats::as_of) then shows how old its last answer is. Without a backend,
    /// returns immediately.
    pub fn refresh(&self, keys: &[&str]) -> impl Future<Output = ()> + Send + use<> {
        let refreshing = self.shared.core.backend.as_ref().map(|backend| {
            let rules = |key: &&str| {
                let rules =
                    |key: &Key, state: &KeyState| (key.clone(), Arc::clone(&state.plan().rules));
                self.shared.table.peek(key, rules)
            };
            backend.refresh(&Reservation::without_amounts(keys.iter().filter_map(rules)))
        });
        async move {
            if let Some(refreshing) = refreshing {
                refreshing.await;
            }
        }
    }

    /// Resets the usage of a key, or of all keys, as [`Limiter::reset`](super::Limiter::reset) and
    /// [`reset_all`](super::Limiter::reset_all) do. Resolves to `true` when it is done everywhere, and to
    /// `false` if a [`Backend`] has not confirmed it within its [`patience`](Backend::patience): it is then
    /// repeated until the backend has. The reset happens even if the future is dropped.
    pub fn reset(&self, key: Option<&str>) -> impl Future<Output = bool> + Send + use<> {
        let resetting = self.reset_by(key, |backend, key| backend.reset_confirmed(key));
        async move {
            let mut is_confirmed = true;
            for reset in resetting {
                is_confirmed &= reset.await;
            }
            is_confirmed
        }
    }

    /// Resets the usage of a key, or of all keys, here and in the backend.
    pub(super) fn reset_by<T>(
        &self,
        only: Option<&str>,
        reset: impl Fn(&dyn Backend, &str) -> T,
    ) -> Vec<T> {
        let core = &self.shared.core;
        let Some(key) = only else {
            let backend = core.backend.as_deref();
            let reset = backend.map(|backend| {
                self.keys().iter().map(|key| reset(backend, key)).collect::<Vec<_>>()
            });
            self.shared.reset(None);
            return reset.unwrap_or_default();
        };
        // Other processes may have used a key that has no entry here, so the reset is recorded.
        let entry = match core.dirty.is_tracked() {
            true => self.shared.key_ref(key, self.budget).entry().ok(),
            false => self.shared.table.find(key),
        };
        if let Some(entry) = &entry {
            self.shared.reset(Some(entry));
        }
        let Some(backend) = core.backend.as_deref() else { return Vec::new() };
        let resolved = self.shared.table.peek(key, |key, _| key.clone());
        vec![reset(backend, resolved.as_deref().unwrap_or(key))]
    }
}
