use crate::backend::Closing;
use crate::key::changes::KeyChanges;

/// A companion of a limiter until its end: a store that is to get its last changes.
pub trait Attached: Send + Sync + 'static {
    /// The limiter was closed. Its last changes may still be collected, and more may come as what is
    /// in flight ends.
    fn close(&self) -> Closing;

    /// Returns why the limiter's changes could not be saved the last time, if they could not. Default:
    /// `None`.
    fn unsaved(&self) -> Option<String> {
        None
    }

    /// The last clone of the limiter is gone, whether it was closed or not, and these are the changes
    /// that were not collected. May block for as long as it takes to write them down. Called once, by
    /// the thread that dropped that clone.
    ///
    /// Requests in flight by then are held in these changes. Their permits still end, but that is not
    /// reported: the amounts that they hold are best counted as taken.
    fn end(&self, last: Vec<KeyChanges>);
}
