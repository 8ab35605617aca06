use crate::backend::{Closing, Measurement};
use crate::key::changes::KeyChanges;

/// A component attached to a limiter, such as a store, that receives the limiter's last changes.
pub trait Attached: Send + Sync + 'static {
    /// Finishes pending work when the limiter is closed. Changes can still be collected, and more follow as
    /// requests in flight end.
    fn close(&self) -> Closing;

    /// Returns the reason for which the last changes could not be saved; `None`, the default, if they were.
    fn unsaved(&self) -> Option<String> {
        None
    }

    /// Returns whether a store has lost its file, which was deleted or replaced.
    fn is_store_lost(&self) -> bool {
        false
    }

    /// Returns values for the metrics. Must not block.
    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }

    /// Handles the end of the limiter, closed or not: `last` holds the changes that were not collected.
    /// Called once, by the thread that drops the last clone of the limiter. May block while it writes the
    /// changes.
    ///
    /// The changes include the amounts that requests in flight hold. The ends of these requests are not
    /// reported any more, so count the held amounts as used.
    fn end(&self, last: Vec<KeyChanges>);
}
