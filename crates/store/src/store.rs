use std::fmt::Debug;
use std::time::Duration;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{Boot, KeyChanges, NamedQuota};

use crate::error::StoreError;
use crate::state::State;

/// A store that keeps a limiter's state across restarts. Every call may block on disk I/O.
pub trait Store: Debug + Send + 'static {
    /// Sets the machine's uptime, if the limiter's clock knows it. Called before the store is
    /// opened and before each sync. Stores use it to detect that the clock was set between two runs,
    /// or stopped while the machine was suspended.
    fn set_boot(&mut self, _boot: Option<Boot>) {}

    /// Sets the flush interval. Called before the store is opened.
    fn set_flush(&mut self, _flush: Duration) {}

    /// Opens the store and registers the limiter with it, so that its changes become visible to other
    /// limiters that share the store. Returns the stored state, in which times of usage are at most `now`.
    ///
    /// # Errors
    /// Returns [`StoreError`] with the path; the store is unchanged.
    fn open(&mut self, now: Timestamp) -> Result<State, StoreError>;

    /// Writes changes, and the quotas if given. Returns the changes since the last call that other
    /// limiters have written to the store.
    ///
    /// # Errors
    /// Returns [`StoreError`] with the path. No change was written; the caller keeps them for the
    /// next call.
    fn sync(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: Timestamp,
    ) -> Result<Vec<KeyChanges>, StoreError>;

    /// Checks whether the file is still in place. Called at least twice a second.
    ///
    /// # Errors
    /// Returns [`StoreError`] with the path.
    fn check(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Closes the store: amounts that this limiter still holds count as used.
    ///
    /// # Errors
    /// Returns [`StoreError`] with the path.
    fn close(&mut self, now: Timestamp) -> Result<(), StoreError>;
}
