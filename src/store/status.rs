use super::error::StoreError;
use crate::timestamp::Timestamp;

/// How the keeping of a limiter goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStatus {
    /// When the store was last written to or asked.
    pub kept_at: Option<Timestamp>,
    /// How often that went well, since the start.
    pub flushes: u64,
    /// How often it didn't.
    pub failures: u64,
    /// Of how many keys changes are yet to be written down, after the store couldn't be.
    pub pending_keys: usize,
    /// Why it couldn't, if it couldn't the last time; the limiter goes on in memory.
    pub trouble: Option<StoreError>,
}

impl StoreStatus {
    /// Notes how it went, and says so once where that is new.
    pub(super) fn note(
        &mut self,
        result: &Result<(), StoreError>,
        now: Timestamp,
        pending_keys: usize,
    ) {
        self.pending_keys = pending_keys;
        match result {
            Ok(()) => {
                self.kept_at = Some(now);
                self.flushes += 1;
                if let Some(past) = self.trouble.take() {
                    tracing::info!(file = %past.path.display(), "saving state works again");
                }
            }
            Err(error) => {
                self.failures += 1;
                if self.trouble.as_ref().is_none_or(|known| known.reason != error.reason) {
                    tracing::warn!(%error, "failed to save state; the limiter continues in memory");
                }
                self.trouble = Some(error.clone());
            }
        }
    }
}
