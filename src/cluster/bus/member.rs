use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use compact_str::CompactString;
use parking_lot::Mutex;

use super::agent::AgentStatus;
use super::message;
use super::port::Bus;
use crate::limiter::{
    Attached, CapacityUpdate, Closing, CoolDown, Event, Ignored, KeyChanges, Limiter, WeakLimiter,
};

/// A limiter's seat on a bus. The limiter owns it; the bus and the limiter's events only know it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: String,
    bus: Arc<dyn Bus>,
    limiter: WeakLimiter,
    ended: AtomicBool,
    announced: AtomicU64,
    heard: Mutex<AgentStatus>,
    /// Until when the others were told to pause, by key.
    paused: Mutex<HashMap<CompactString, u64>>,
}

impl Member {
    /// Takes a seat on a bus for a limiter.
    pub(super) fn new(limiter: &Limiter, bus: Arc<dyn Bus>, id: String) -> Arc<Self> {
        let member = Arc::new(Self {
            id,
            bus,
            limiter: limiter.downgrade(),
            ended: AtomicBool::new(false),
            announced: AtomicU64::new(0),
            heard: Mutex::default(),
            paused: Mutex::default(),
        });
        member.hear(message::CAPACITY, Self::follow_capacity);
        member.hear(message::COOL_DOWN, Self::follow_cool_down);
        limiter.state().attach(Arc::clone(&member) as Arc<dyn Attached>);
        let speaker = Arc::downgrade(&member);
        limiter.listen(move |event| {
            if let Some(member) = speaker.upgrade() {
                member.tell(event);
            }
        });
        member
    }

    pub(super) fn status(&self) -> AgentStatus {
        let heard = self.heard.lock().clone();
        let announced = self.announced.load(Ordering::Relaxed);
        AgentStatus { bus: self.bus.status(), announced, ..heard }
    }

    fn hear(
        self: &Arc<Self>,
        subject: &str,
        follow: fn(&Self, &Limiter, &[u8]) -> Result<u64, Unheard>,
    ) {
        let member = Arc::downgrade(self);
        self.bus.subscribe(
            subject,
            Arc::new(move |message| {
                let Some(member) = Weak::upgrade(&member) else { return ControlFlow::Break(()) };
                // Not a clone that would put off the limiter's end, and bring it about here.
                let limiter = member.limiter.aside().filter(|_| member.is_there());
                let Some(limiter) = limiter else { return ControlFlow::Break(()) };
                let followed = follow(&member, &limiter, message);
                member.count(&followed);
                ControlFlow::Continue(())
            }),
        );
    }

    fn follow_capacity(&self, limiter: &Limiter, message: &[u8]) -> Result<u64, Unheard> {
        let update = message::read_capacity(message).ok_or(Unheard::Malformed)?;
        limiter.feedback().apply(&update, &self.id).map_err(Unheard::Ignored)
    }

    fn follow_cool_down(&self, limiter: &Limiter, message: &[u8]) -> Result<u64, Unheard> {
        let cool_down = message::read_cool_down(message).ok_or(Unheard::Malformed)?;
        limiter.feedback().apply_cool_down(&cool_down, &self.id).map_err(Unheard::Ignored)
    }

    fn count(&self, followed: &Result<u64, Unheard>) {
        let mut heard = self.heard.lock();
        match followed {
            Ok(_) => heard.applied += 1,
            Err(Unheard::Malformed) => heard.malformed += 1,
            Err(Unheard::Ignored(why)) => *heard.ignored.entry(*why).or_default() += 1,
        }
    }

    /// Tells the others of what happened here.
    fn tell(&self, event: &Event) {
        match event {
            _ if !self.is_there() => {}
            Event::Reduced { key, capacity, reason, agent: None } => {
                let update = CapacityUpdate::new(&**key, &*self.id, *capacity, self.limiter.now());
                let update = update.with_reason(&**reason);
                self.publish(message::CAPACITY, &message::write_capacity(&update));
            }
            Event::CoolingDown { key, until, agent: None } => self.tell_cool_down(key, *until),
            _ => {}
        }
    }

    fn tell_cool_down(&self, key: &CompactString, until: u64) {
        let now = self.limiter.now();
        let left = until.saturating_sub(now);
        {
            let mut paused = self.paused.lock();
            paused.retain(|_, until| *until > now);
            // A burst of refusals moves the end a little with each: the others needn't hear of all.
            if paused.get(key).is_some_and(|&told| until <= told.saturating_add(left / SAME)) {
                return;
            }
            paused.insert(key.clone(), until);
        }
        let cool_down = CoolDown::new(&**key, &*self.id, Duration::from_nanos(left), now);
        let cool_down = cool_down.with_reason("refused by the provider");
        self.publish(message::COOL_DOWN, &message::write_cool_down(&cool_down));
    }

    fn publish(&self, subject: &str, message: &[u8]) {
        self.announced.fetch_add(1, Ordering::Relaxed);
        self.bus.publish(subject, message);
    }

    fn is_there(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }
}

impl Attached for Member {
    fn close(&self) -> Closing {
        // Nothing new is sent from here; those in flight may still be refused, which others should know.
        Box::pin(std::future::ready(()))
    }

    fn end(&self, _: Vec<KeyChanges>) {
        self.ended.store(true, Ordering::Release);
    }
}

/// Why a message changed nothing.
enum Unheard {
    Malformed,
    Ignored(Ignored),
}

/// A pause that ends later by less than this part of what is left of it is the same.
const SAME: u64 = 8;
