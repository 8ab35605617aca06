use std::sync::Arc;
use std::time::Duration;

use super::entry::Locked;
use crate::backend::{Backend, Refreshing, Reservation};
use crate::engine::{Level, Rule, Wait};
use crate::key::denial::Denial;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// The result of a gate's look at a key whose buckets a [`Backend`] keeps.
pub(super) enum Look {
    Open,
    /// The request wouldn't be admitted for a while. The gate looks again at this time at the latest.
    Denied(Denial, Timestamp),
    /// The backend has to be asked first.
    Ask(Refreshing),
}

/// Looks whether a request of this cost would be admitted soon. `asked_at` is the time at which the gate last asked
/// the backend.
pub(super) fn look(
    backend: &Arc<dyn Backend>,
    key: &Locked<'_>,
    cost: &Cost,
    asked_at: Option<Timestamp>,
) -> Look {
    let now = key.now();
    let is_recent = |time: Option<Timestamp>| time.is_some_and(|time| now < time + PERIOD);
    if !key.is_spending_key
        && let Err(denial) = key.check_open(now)
    {
        return Look::Denied(denial, now + PERIOD);
    }
    let levels = key.limit_levels(key.key(), Some(backend));
    let short = levels.limits().filter(|(rule, level)| is_short_for_long(rule, level, cost));
    let Some(fresh_at) = short.map(|(_, level)| level.fresh_at).max() else { return Look::Open };
    let known_at = backend.known_at(key.key());
    if is_recent(known_at) {
        return Look::Denied(Denial::Elsewhere(Wait::Unknown), fresh_at.min(now + PERIOD));
    }
    let was_answered = |asked: Timestamp| known_at.is_some_and(|known| asked < known + PERIOD);
    match asked_at.filter(|_| is_recent(asked_at)) {
        // The backend doesn't answer: what it does then is for the request to find out.
        Some(asked) if !was_answered(asked) => Look::Open,
        _ => {
            let keys = [(key.key().clone(), Arc::clone(&key.plan().rules))];
            Look::Ask(backend.refresh(&Reservation::without_amounts(keys)))
        }
    }
}

/// Returns whether a limit doesn't admit the cost within a [`PERIOD`], even if all that is held came back.
fn is_short_for_long(rule: &Rule, level: &Level, cost: &Cost) -> bool {
    let free = level.available.saturating_add(level.held);
    rule.needed(rule.amount(cost)) > free.saturating_add(rule.returned_within(PERIOD))
}

/// The time for which an answer of the backend counts, and between two looks.
const PERIOD: Duration = Duration::from_millis(500);
