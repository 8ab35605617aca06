//! Whoever likes is called when another agent's update was applied, and only then.

use std::sync::Arc;

use parking_lot::Mutex;
use tollgate::cluster::{Agent, Bus, LocalBus};
use tollgate::limiter::{CapacityUpdate, Event, Limiter, Reduction};
use tollgate::quota::Quota;

use super::rig::{buckets, builder};

pub(super) fn limiter() -> Limiter {
    let quota = buckets(Quota::new().rpm(100));
    builder().reduction(Reduction::new()).quota("k", quota).build().unwrap()
}

#[test]
fn s06_a_callback_is_called_for_each_update_that_was_applied_and_for_no_other() {
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let (teller, hearer) = (limiter(), limiter());
    for (limiter, id) in [(&teller, "teller"), (&hearer, "hearer")] {
        Agent::join(limiter, Arc::clone(&bus), id).unwrap();
    }
    let updates = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&updates);
    hearer.listen(move |event| {
        if let Event::Reduced { key, capacity, reason, agent: Some(agent) } = event {
            seen.lock().push(format!("{key} reduced by {agent}: {reason} (new: {capacity})"));
        }
    });
    teller.feedback().reduce("k", "received 429 response");
    // One's own is no update, and what isn't lower isn't applied.
    hearer.feedback().reduce("k", "received 429 response");
    let not_lower = CapacityUpdate::new("k", "teller", 90, hearer.now());
    assert!(hearer.feedback().apply(&not_lower, "hearer").is_err());
    assert_eq!(*updates.lock(), ["k reduced by teller: received 429 response (new: 50)"]);
}

#[test]
fn s06_a_channel_hears_the_same() {
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
    let (teller, hearer) = (limiter(), limiter());
    Agent::join(&teller, Arc::clone(&bus), "teller").unwrap();
    Agent::join(&hearer, bus, "hearer").unwrap();
    let mut events = hearer.subscribe();
    teller.feedback().reduce("k", "received 429 response");
    let event = Event::Reduced {
        key: "k".into(),
        capacity: 50,
        reason: "received 429 response".into(),
        agent: Some("teller".into()),
    };
    assert_eq!(events.try_recv().unwrap(), event);
    assert!(events.try_recv().is_err());
}
