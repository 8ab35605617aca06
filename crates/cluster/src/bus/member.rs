use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::{
    Attached, CapacityUpdate, Closing, CoolDown, Event, Ignored, KeyChanges, LearnedUpdate,
    Limiter, Measurement, WeakLimiter,
};
use paceline_limiter::quota::Key;
use paceline_limiter::seam;
use parking_lot::Mutex;

use super::bus::Bus;
use super::message;
use super::status::AgentStatus;

/// A limiter's membership of a bus: publishes its events and applies the messages of other agents.
///
/// The limiter owns the member. The bus and the limiter's event listener hold weak references.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: String,
    bus: Arc<dyn Bus>,
    limiter: WeakLimiter,
    ended: AtomicBool,
    announced: AtomicU64,
    received: Mutex<AgentStatus>,
    /// The end of the cool-down that was last published, by key.
    paused: Mutex<HashMap<Key, Timestamp>>,
}

impl Member {
    /// Subscribes to the bus and to the limiter's events.
    pub(super) fn new(limiter: &Limiter, bus: Arc<dyn Bus>, id: String) -> Arc<Self> {
        let member = Arc::new(Self {
            id,
            bus,
            limiter: limiter.downgrade(),
            ended: AtomicBool::new(false),
            announced: AtomicU64::new(0),
            received: Mutex::default(),
            paused: Mutex::default(),
        });
        member.subscribe(message::CAPACITY, Self::apply_capacity);
        member.subscribe(message::COOL_DOWN, Self::apply_cool_down);
        member.subscribe(message::LEARNED, Self::apply_learned);
        seam::attach(limiter, Arc::clone(&member) as Arc<dyn Attached>);
        let weak = Arc::downgrade(&member);
        limiter.listen(move |event| {
            if let Some(member) = weak.upgrade() {
                member.on_event(event);
            }
        });
        member
    }

    pub(super) fn status(&self) -> AgentStatus {
        let received = self.received.lock().clone();
        let announced = self.announced.load(Ordering::Relaxed);
        AgentStatus { bus: self.bus.status(), announced, ..received }
    }

    fn subscribe(
        self: &Arc<Self>,
        subject: &str,
        apply: fn(&Self, &Limiter, &[u8]) -> Result<(), IgnoredUpdate>,
    ) {
        let member = Arc::downgrade(self);
        self.bus.subscribe(
            subject,
            Arc::new(move |message| {
                let Some(member) = Weak::upgrade(&member) else { return ControlFlow::Break(()) };
                // A normal clone could become the last one, and its drop would close the limiter on
                // this thread.
                let limiter = member.limiter.upgrade_detached().filter(|_| member.is_active());
                let Some(limiter) = limiter else { return ControlFlow::Break(()) };
                let applied = apply(&member, &limiter, message);
                member.count(&applied);
                ControlFlow::Continue(())
            }),
        );
    }

    fn apply_capacity(&self, limiter: &Limiter, message: &[u8]) -> Result<(), IgnoredUpdate> {
        let update = message::read_capacity(message).ok_or(IgnoredUpdate::Malformed)?;
        let applied = limiter.feedback().apply(&update, &self.id);
        applied.map(drop).map_err(IgnoredUpdate::Ignored)
    }

    fn apply_cool_down(&self, limiter: &Limiter, message: &[u8]) -> Result<(), IgnoredUpdate> {
        let cool_down = message::read_cool_down(message).ok_or(IgnoredUpdate::Malformed)?;
        let applied = limiter.feedback().apply_cool_down(&cool_down, &self.id);
        applied.map(drop).map_err(IgnoredUpdate::Ignored)
    }

    fn apply_learned(&self, limiter: &Limiter, message: &[u8]) -> Result<(), IgnoredUpdate> {
        let update = message::read_learned(message).ok_or(IgnoredUpdate::Malformed)?;
        let applied = limiter.feedback().apply_learned(&update, &self.id);
        applied.map_err(IgnoredUpdate::Ignored)
    }

    fn count(&self, applied: &Result<(), IgnoredUpdate>) {
        let mut received = self.received.lock();
        match applied {
            Ok(_) => received.applied += 1,
            Err(IgnoredUpdate::Malformed) => received.malformed += 1,
            Err(IgnoredUpdate::Ignored(why)) => *received.ignored.entry(*why).or_default() += 1,
        }
    }

    /// Publishes a reduction or cool-down that originated in this limiter.
    fn on_event(&self, event: &Event) {
        match event {
            _ if !self.is_active() => {}
            Event::Reduced { key, capacity, reason, agent: None } => {
                self.publish_capacity(key, *capacity, reason);
            }
            Event::LimitsLearned { key, limits, capacity } => {
                if *capacity > 0 {
                    self.publish_capacity(key, *capacity, REFUSED);
                }
                let now = self.limiter.now();
                let update = LearnedUpdate::new(&**key, &*self.id, limits.clone(), now);
                self.publish(message::LEARNED, &message::write_learned(&update));
            }
            Event::CoolingDown { key, until, agent: None, .. } => {
                self.publish_cool_down(key, *until)
            }
            _ => {}
        }
    }

    fn publish_capacity(&self, key: &Key, capacity: u64, reason: &str) {
        let update = CapacityUpdate::new(&**key, &*self.id, capacity, self.limiter.now());
        let update = update.with_reason(reason);
        self.publish(message::CAPACITY, &message::write_capacity(&update));
    }

    fn publish_cool_down(&self, key: &Key, until: Timestamp) {
        let now = self.limiter.now();
        let left = until - now;
        {
            let mut paused = self.paused.lock();
            paused.retain(|_, until| *until > now);
            // Each refusal of a burst extends the cool-down a little; publish only significant
            // extensions.
            if paused.get(key).is_some_and(|&announced_until| {
                until <= announced_until + left / COOL_DOWN_TOLERANCE
            }) {
                return;
            }
            paused.insert(key.clone(), until);
        }
        let cool_down = CoolDown::new(&**key, &*self.id, left, now);
        let cool_down = cool_down.with_reason(REFUSED);
        self.publish(message::COOL_DOWN, &message::write_cool_down(&cool_down));
    }

    fn publish(&self, subject: &str, message: &[u8]) {
        self.announced.fetch_add(1, Ordering::Relaxed);
        self.bus.publish(subject, message);
    }

    fn is_active(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }
}

impl Attached for Member {
    fn close(&self) -> Closing {
        // Closing stops new requests. Requests in flight may still be refused, which the member
        // publishes.
        Box::pin(std::future::ready(()))
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.bus.status().measurements()
    }

    fn end(&self, _: Vec<KeyChanges>) {
        self.ended.store(true, Ordering::Release);
    }
}

/// The reason why a message was not applied.
enum IgnoredUpdate {
    Malformed,
    Ignored(Ignored),
}

/// The reason of messages about refusals.
const REFUSED: &str = "refused by the provider";

/// The fraction (1/8) of the remaining time by which a cool-down must have been extended to be
/// published again.
const COOL_DOWN_TOLERANCE: u32 = 8;
