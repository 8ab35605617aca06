use std::time::Duration;

use crate::quota::Key;

use super::learned::Learned;
use super::scope_key::{ScopeKey, ScopeKeys};
use crate::limiter::Limiter;

/// The state that the services of one layer share.
pub(super) struct Settings<C, O> {
    pub(super) limiter: Limiter,
    pub(super) classify: C,
    pub(super) observe: O,
    pub(super) options: Options,
    pub(super) learned: Learned,
}

/// The options of a layer.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) key: Option<Key>,
    /// The layer's own key, and its other scopes.
    pub(super) keys: ScopeKeys,
    pub(super) max_wait: Option<Duration>,
    pub(super) discover: bool,
    /// Refusals are answered with the figures of their keys.
    pub(super) answers: bool,
}

impl Options {
    /// The scopes beside the request's own key.
    pub(super) fn scopes(&self) -> &[ScopeKey] {
        &self.keys[usize::from(self.key.is_some())..]
    }
}
