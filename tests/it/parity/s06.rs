//! Listeners are called for each applied update of another agent, and for no other update.

use std::sync::Arc;

use paceline::cluster::{Agent, Bus, LocalBus};
use paceline::limiter::{CapacityUpdate, Event, Limiter, Reduction};
use paceline::quota::Quota;
use parking_lot::Mutex;

use super::rig::{buckets, builder};

pub(super) fn limiter() -> Limiter {
    let quota = buckets(Quota::new().rpm(100));
    builder().reduction(Reduction::new()).quota("k", quota).build().unwrap()
}

#[test]
fn s06_listener_is_called_for_each_applied_update_only() {
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let (sender, receiver) = (limiter(), limiter());
    for (limiter, id) in [(&sender, "sender"), (&receiver, "receiver")] {
        Agent::join(limiter, Arc::clone(&bus), id).unwrap();
    }
    let updates = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&updates);
    receiver.listen(move |event| {
        if let Event::Reduced { key, capacity, reason, agent: Some(agent) } = event {
            seen.lock().push(format!("{key} reduced by {agent}: {reason} (new: {capacity})"));
        }
    });
    sender.feedback().reduce("k", "received 429 response");
    // An update of the agent itself isn't applied, nor one that isn't lower.
    receiver.feedback().reduce("k", "received 429 response");
    let not_lower = CapacityUpdate::new("k", "sender", 90, receiver.now());
    assert!(receiver.feedback().apply(&not_lower, "receiver").is_err());
    assert_eq!(*updates.lock(), ["k reduced by sender: received 429 response (new: 50)"]);
}

#[test]
fn s06_subscriber_receives_the_same_event() {
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let (sender, receiver) = (limiter(), limiter());
    Agent::join(&sender, Arc::clone(&bus), "sender").unwrap();
    Agent::join(&receiver, bus, "receiver").unwrap();
    let mut events = receiver.subscribe();
    sender.feedback().reduce("k", "received 429 response");
    let event = Event::Reduced {
        key: "k".into(),
        capacity: 50,
        reason: "received 429 response".into(),
        agent: Some("sender".into()),
    };
    assert_eq!(events.try_recv().unwrap(), event);
    assert!(events.try_recv().is_err());
}
