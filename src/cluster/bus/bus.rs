use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::status::BusStatus;

/// Called with each message of a subject, on a thread of the bus or of whoever publishes: it should
/// be quick, and must not panic. [`ControlFlow::Break`] ends the subscription.
pub type MessageHandler = Arc<dyn Fn(&[u8]) -> ControlFlow<()> + Send + Sync>;

/// Carries messages between programs. All of one subject reach all who listen to it, the sender
/// included; those sent while the way is cut are lost.
pub trait Bus: fmt::Debug + Send + Sync + 'static {
    /// Hands a message over, and never waits: what can't be handed over or sent is dropped and
    /// counted.
    fn publish(&self, subject: &str, message: &[u8]);

    /// Calls `handler` with every message of a subject from now on, for as long as there is the bus.
    fn subscribe(&self, subject: &str, handler: MessageHandler);

    /// What it did so far.
    fn status(&self) -> BusStatus;
}
