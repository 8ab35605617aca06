use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tokio::sync::broadcast;

use super::event::Event;
use super::log;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, RwLock};

/// The channel of events and its listeners. It costs two loads without subscribers, and no memory before
/// the first.
#[derive(Debug, Default)]
pub(crate) struct Events {
    sender: OnceLock<broadcast::Sender<Event>>,
    listeners: RwLock<Listeners>,
    watched: AtomicBool,
    /// `true` if there is a listener for changes only.
    has_change_listeners: AtomicBool,
    /// Events sent under a lock, to be delivered without it, since a listener may call the limiter.
    posted: Mutex<Vec<Event>>,
    is_posted: AtomicBool,
}

impl Events {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        let receiver = self.sender.get_or_init(|| broadcast::Sender::new(CAPACITY)).subscribe();
        self.watched.store(true, Ordering::Release);
        receiver
    }

    pub(crate) fn listen(&self, listener: Listener) {
        let flag = if listener.wants_all { &self.watched } else { &self.has_change_listeners };
        self.listeners.write().0.push(listener);
        flag.store(true, Ordering::Release);
    }

    /// Returns `true` if there may be a subscriber to changes.
    #[inline]
    pub(crate) fn has_subscribers(&self) -> bool {
        self.watched.load(Ordering::Acquire) || self.has_change_listeners.load(Ordering::Acquire)
    }

    /// Returns `true` if there may be a subscriber to all events, or events are logged.
    #[inline]
    pub(crate) fn are_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) || log::is_on()
    }

    /// Sends an event. Every request passes here, so the event is created out of line.
    #[inline(always)]
    pub(crate) fn send(&self, event: impl FnOnce() -> Event) {
        if self.are_watched() {
            self.deliver_new(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn deliver_new(&self, event: impl FnOnce() -> Event) {
        self.deliver(event());
    }

    /// Sends a rare event, which is logged at `INFO`.
    #[cold]
    pub(crate) fn announce(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() || log::logs_changes() {
            self.deliver(event());
        }
    }

    /// Keeps a rare event until a caller without a lock delivers it.
    #[cold]
    pub(crate) fn post(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() || log::logs_changes() {
            self.posted.lock().push(event());
            self.is_posted.store(true, Ordering::Release);
        }
    }

    /// Delivers kept events. Must be called without a lock.
    #[inline]
    pub(crate) fn flush(&self) {
        if self.is_posted.load(Ordering::Acquire) {
            self.deliver_posted();
        }
    }

    #[cold]
    fn deliver_posted(&self) {
        self.is_posted.store(false, Ordering::Release);
        let posted = std::mem::take(&mut *self.posted.lock());
        posted.into_iter().for_each(|event| self.deliver(event));
    }

    #[cold]
    fn deliver(&self, event: Event) {
        log::log(&event);
        let listeners = self.listeners.read().0.clone();
        let wants = |listener: &&Listener| listener.wants_all || event.is_change();
        listeners.iter().filter(wants).for_each(|listener| (listener.call)(&event));
        let has_no_receiver = self.sender.get().is_none_or(|sender| sender.send(event).is_err());
        if has_no_receiver && !listeners.iter().any(|listener| listener.wants_all) {
            self.watched.store(false, Ordering::Release);
            // A subscriber may have been added in between.
            if self.has_receiver() {
                self.watched.store(true, Ordering::Release);
            }
        }
    }

    fn has_receiver(&self) -> bool {
        let subscribed = self.sender.get().is_some_and(|sender| sender.receiver_count() > 0);
        subscribed || self.listeners.read().0.iter().any(|listener| listener.wants_all)
    }
}

/// The listeners; there is seldom more than one.
#[derive(Default)]
struct Listeners(SmallVec<[Listener; 1]>);

/// A function that is called with events.
#[derive(Clone)]
pub(crate) struct Listener {
    /// `true` if it receives all events, `false` if only changes.
    pub(crate) wants_all: bool,
    pub(crate) call: Arc<dyn Fn(&Event) + Send + Sync>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.0.len())
    }
}

/// The number of events that a subscriber may lag before it loses the oldest.
const CAPACITY: usize = 4_096;
