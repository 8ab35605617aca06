use std::sync::atomic::{AtomicU64, Ordering};

use super::bus::{Bus, MessageHandler};
use super::status::BusStatus;
use super::subscriptions::Subscriptions;

/// A bus within the process, for tests and for programs with several limiters. Messages are received
/// on the thread that publishes them, before [`publish`](Bus::publish) returns.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::cluster::{Agent, Bus, LocalBus};
/// use tollgate::{Limiter, Quota};
///
/// let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
/// let limiter = || Limiter::builder().quota("gpt-4o", Quota::new().rpm(500)).build();
/// let (here, there) = (limiter()?, limiter()?);
/// let _agents = [
///     Agent::join(&here, Arc::clone(&bus), "here")?,
///     Agent::join(&there, Arc::clone(&bus), "there")?,
/// ];
/// here.feedback().reduce("gpt-4o", "received 429 response");
/// assert_eq!(there.stats("gpt-4o").limits[0].limit, 250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct LocalBus {
    subscriptions: Subscriptions,
    published: AtomicU64,
}

impl LocalBus {
    /// A bus that nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Bus for LocalBus {
    fn publish(&self, subject: &str, message: &[u8]) {
        self.published.fetch_add(1, Ordering::Relaxed);
        self.subscriptions.deliver(subject, message);
    }

    fn subscribe(&self, subject: &str, handler: MessageHandler) {
        self.subscriptions.add(subject, handler);
    }

    fn status(&self) -> BusStatus {
        let (published, received) =
            (self.published.load(Ordering::Relaxed), self.subscriptions.received());
        BusStatus { connected: true, published, received, ..BusStatus::default() }
    }
}
