//! Admission under one key: the fast path that nearly every request takes, and calls that don't wait.
//! [`Request`](super::request::Request) judges requests under several keys and requests that wait.

use std::sync::Arc;

use super::core::Core;
use super::entry::{Entry, Locked};
use super::key_reservation::GrantedKey;
use super::key_state::KeyState;
use super::permit::Permit;
use crate::answer::error::Refused;
use crate::event::Event;
use crate::key::denial::Denial;
use crate::plan::Plan;
use crate::quota::Cost;
use crate::timestamp::Timestamp;

/// The result of an attempt under one key.
pub(super) enum Answer {
    Granted(Permit),
    Refused(Refused),
    /// The entry cannot decide: it is retired, the limiter is closed, a backend keeps the buckets, or requests also
    /// count to the budget of another key.
    Unknown,
}

/// Reserves if a quick check shows that the cost fits. If the request has default limits, the key must
/// follow them, or a quota must cover it. If a provider has read the key as a model, it must count as one. If a
/// provider answers the request, it must have confirmed the key's limits. `None` means only that the slow
/// path has to decide.
#[inline(always)]
pub(super) fn try_fast(
    entry: Arc<Entry>,
    cost: &Cost,
    default: Option<&Arc<Plan>>,
    is_model: bool,
    is_answered: bool,
) -> Option<Permit> {
    let is_followed =
        |plan: &Plan| default.is_none_or(|default| plan.named || plan.has_rules_of(default));
    let is_current = |state: &KeyState| {
        is_followed(state.plan())
            && (!is_model || state.plan().provider.is_some())
            && (!is_answered || state.has_confirmed_limits())
    };
    reserve_fast(entry, cost, is_current, |_| ()).ok()
}

/// Reserves or refuses, without waiting.
#[inline(always)]
pub(super) fn try_one(entry: Arc<Entry>, cost: &Cost) -> Answer {
    match reserve_fast(entry, cost, |_| true, |locked| reserve_or_refuse(locked, cost)) {
        Ok(permit) => Answer::Granted(permit),
        Err(answer) => answer,
    }
}

/// Reserves by the fast path, or else calls `otherwise` under the same lock.
#[inline(always)]
fn reserve_fast<T>(
    entry: Arc<Entry>,
    cost: &Cost,
    is_current: impl FnOnce(&KeyState) -> bool,
    otherwise: impl FnOnce(Option<Locked<'_>>) -> T,
) -> Result<Permit, T> {
    let mut state = entry.lock_fast();
    if !entry.core.is_fast() {
        drop(state);
        return Err(otherwise(None));
    }
    let now = state.now();
    if !is_current(&state) || !state.try_reserve_fast(cost, now) {
        return Err(otherwise(Some(entry.continue_locked(state))));
    }
    if state.take_dirty() {
        entry.push_dirty();
    }
    let (version, holds) = (state.plan().version, state.plan().holds);
    drop(state);
    Ok(grant(entry, version, holds, cost, now))
}

#[inline(never)]
fn reserve_or_refuse(locked: Option<Locked<'_>>, cost: &Cost) -> Answer {
    let decides = |locked: &Locked<'_>| !locked.is_retired() && !locked.plan().has_spending_key;
    let Some(mut locked) = locked.filter(decides) else {
        return Answer::Unknown;
    };
    let entry = locked.entry();
    let cost = &*locked.plan().clip_guesses(cost);
    match locked.reserve(cost) {
        Ok(()) => {
            let (version, holds) = (locked.plan().version, locked.has_end());
            let now = locked.now();
            drop(locked);
            Answer::Granted(grant(Arc::clone(entry), version, holds, cost, now))
        }
        Err(denial) => {
            if let Denial::OthersWaiting(_) = denial {
                locked.on_try();
            }
            let refused = locked.refused(&entry.key, denial, cost);
            drop(locked);
            count_denied(&entry.core, &refused);
            Answer::Refused(refused)
        }
    }
}

#[inline(always)]
fn grant(entry: Arc<Entry>, version: u32, holds: bool, cost: &Cost, now: Timestamp) -> Permit {
    let core = &entry.core;
    core.totals.count_granted();
    core.events.send(|| Event::Granted {
        key: entry.key.clone(),
        cost: cost.clone(),
        metadata: None,
    });
    Permit::new(GrantedKey::new(entry, version), cost.clone(), now, holds)
}

fn count_denied(core: &Core, refused: &Refused) {
    core.totals.count_denied();
    core.denied.offer(&refused.key, Some(refused.code), refused.dimension.as_ref());
    core.events.send(|| Event::Denied {
        key: refused.key.clone(),
        dimension: refused.dimension.clone(),
        metadata: None,
    });
}
