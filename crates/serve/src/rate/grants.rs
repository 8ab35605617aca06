use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::held::Held;
use super::id::Id;
use super::returned::{NotReturned, Returned};
use crate::app::App;
use tollgate::Timestamp;
use tollgate::limiter::{LimitStats, Limiter, Permit};
use tollgate::quota::{Cost, Dimension};

/// Grants, by the ids that their clients were told.
///
/// Of most nothing is kept but the id that its client has. Those whose limiter has something to do when
/// they end are held:
/// - where requests in flight are counted, for `serve.reservation_ttl` from the grant on, whatever the
///   windows: who never says that it is done keeps its place for so long and no longer;
/// - else for the longest window of their key, but no longer than that. They occupy nothing meanwhile.
///
/// Tokens are taken at once. A shared store takes them when a grant ends: there a grant of tokens is
/// ended at once, and can't be given back; but one that has a place among requests in flight keeps its
/// tokens held for as long as that.
#[derive(Debug)]
pub(super) struct Grants {
    /// Of this process: an id of an earlier one is good for nothing.
    secret: RandomState,
    next: AtomicU64,
    held: Arc<Held>,
    returned: Mutex<Returned>,
}

/// More grants are to be held than the server takes.
#[derive(Debug)]
pub(super) struct TooMany;

impl Grants {
    pub(super) fn new(most_held: usize) -> Self {
        let (held, returned) = (Arc::new(Held::new(most_held)), Mutex::default());
        Self { secret: RandomState::new(), next: AtomicU64::new(1), held, returned }
    }

    /// Those whose permits are kept.
    pub(super) fn held(&self) -> Arc<Held> {
        Arc::clone(&self.held)
    }

    /// Forgets what doesn't matter any more.
    pub(super) fn sweep(&self, now: Timestamp) {
        self.returned.lock().sweep(now);
    }

    /// Lets go of a permit, for an id. Tokens are taken from now on, whenever it is given back: nobody
    /// tells later what they were.
    pub(super) fn issue(
        app: &App,
        mut permit: Permit,
        (key, tokens): (&str, u64),
    ) -> Result<Bytes, TooMany> {
        let grants = &app.rate.grants;
        if tokens > 0 {
            permit.settle_early(&Dimension::Tokens, tokens);
        }
        let number = grants.next.fetch_add(1, Ordering::Relaxed);
        let ticket = match permit.into_ticket() {
            Ok(ticket) => Some(ticket),
            Err(permit) => {
                grants.hold(app, (number, permit), (key, tokens))?;
                None
            }
        };
        Ok(Id { number, ticket, tokens }.written(key, &grants.secret))
    }

    /// Gives a grant back that lives and wasn't given back before.
    pub(super) fn give_back(
        &self,
        limiter: &Limiter,
        key: &str,
        text: &str,
    ) -> Result<(), NotReturned> {
        let id = Id::read(text, key, &self.secret).ok_or(NotReturned::Again)?;
        let Some(ticket) = id.ticket else {
            let held = self.held.take(id.number, limiter.now());
            return held.map(Permit::release).ok_or(NotReturned::Again);
        };
        let limits = limiter.stats(key).limits;
        let (now, until) = (limiter.now(), ticket.granted_at + longest(&limits));
        if until <= now {
            return Err(NotReturned::Again);
        }
        self.returned.lock().note((self.secret.hash_one(key), id.number), until, now)?;
        let given = limiter.state().give_back(key, &cost(id.tokens), ticket);
        given.then_some(()).ok_or(NotReturned::Again)
    }

    fn hold(
        &self,
        app: &App,
        (number, permit): (u64, Permit),
        (key, tokens): (&str, u64),
    ) -> Result<(), TooMany> {
        let limits = app.limiter.stats(key).limits;
        let in_flight = limits.iter().any(|limit| limit.dimension == Dimension::Concurrency);
        let ttl = app.serve.reservation_ttl;
        let time = match in_flight {
            true => ttl,
            // It is charged as it ends, which must be now.
            false if permit.is_remote() && tokens > 0 => return Ok(()),
            false => ttl.min(longest(&limits)),
        };
        let until = permit.granted_at() + time;
        match self.held.keep(number, until, permit) {
            Err(permit) if in_flight => {
                permit.release();
                Err(TooMany)
            }
            // It just can't be given back.
            _ => Ok(()),
        }
    }
}

/// What a request takes.
pub(super) fn cost(tokens: u64) -> Cost {
    Cost::new().tokens(tokens)
}

/// For how long what a grant took counts.
fn longest(limits: &[LimitStats]) -> Duration {
    let timed = limits.iter().filter(|limit| limit.dimension != Dimension::Concurrency);
    timed.map(|limit| limit.window.as_duration()).max().unwrap_or_default()
}
