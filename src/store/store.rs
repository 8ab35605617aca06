use std::fmt::Debug;
use std::time::Duration;

use super::error::StoreError;
use super::state::State;
use crate::limiter::{Boot, KeyChanges, NamedQuota};
use crate::timestamp::Timestamp;

/// Where a limiter's state is kept across restarts. Every call may block on a disk.
pub trait Store: Debug + Send + 'static {
    /// Told before the store is opened, and before each time that it is written to: for how long the
    /// machine has been running, where the limiter's clock knows it. By that a clock is found out that
    /// was set between two runs, or stood still while the machine slept.
    fn set_boot(&mut self, _boot: Option<Boot>) {}

    /// Told before the store is opened: how often it will be written to.
    fn set_flush(&mut self, _flush: Duration) {}

    /// Joins in: from now on others who share the store see what this limiter does. Answers with all
    /// that is kept, its times set right for `now`.
    ///
    /// # Errors
    /// [`StoreError`], with the file's name. Nothing was changed.
    fn open(&mut self, now: Timestamp) -> Result<State, StoreError>;

    /// Writes down what changed, and the quotas if they are given; answers with what others who
    /// share the store did since the last time.
    ///
    /// # Errors
    /// [`StoreError`], with the file's name. Nothing was written: the changes are still to be.
    fn sync(
        &mut self,
        changes: &[KeyChanges],
        quotas: Option<&[NamedQuota]>,
        now: Timestamp,
    ) -> Result<Vec<KeyChanges>, StoreError>;

    /// Leaves: what this limiter still held counts as taken.
    ///
    /// # Errors
    /// [`StoreError`], with the file's name.
    fn close(&mut self, now: Timestamp) -> Result<(), StoreError>;
}
