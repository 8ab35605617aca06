use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::status::BusStatus;

/// A callback for the messages of a subject.
///
/// It runs on a thread of the bus or of the publisher, so it should return quickly and must not
/// panic. [`ControlFlow::Break`] ends the subscription.
pub type MessageHandler = Arc<dyn Fn(&[u8]) -> ControlFlow<()> + Send + Sync>;

/// A publish-subscribe message bus between processes.
///
/// A message reaches all subscribers of its subject, the publisher included. Messages sent while
/// the connection is down are lost.
pub trait Bus: fmt::Debug + Send + Sync + 'static {
    /// Publishes a message without waiting. A message that cannot be queued or sent is dropped and
    /// counted.
    fn publish(&self, subject: &str, message: &[u8]);

    /// Calls `handler` with every message of a subject from now on, for the lifetime of the bus.
    fn subscribe(&self, subject: &str, handler: MessageHandler);

    /// Returns the connection state and the message counters.
    fn status(&self) -> BusStatus;
}
