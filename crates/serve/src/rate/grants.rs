use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::grant_id::GrantId;
use super::held_permits::HeldPermits;
use super::returned_grants::{ReturnError, ReturnedGrants};
use paceline::Timestamp;
use paceline::limiter::{LimitStats, Limiter, Permit};
use paceline::quota::{Cost, Dimension};
use paceline_limiter::seam;

/// The grants of `/rate` by id.
///
/// Most grants need no state besides the id, which the client stores. If the limiter must act at the end
/// of a grant, its permit is held:
/// - with a limit on requests in flight, for `serve.reservation_ttl` after the grant, regardless of the
///   windows: a client that never returns a grant occupies the limit no longer than that;
/// - otherwise for the longest window of the key, but at most for that time. It occupies no limit
///   meanwhile.
///
/// Tokens are charged at the grant. A shared store charges them when a permit ends. With such a store, a
/// grant with tokens ends immediately and cannot be returned, unless it counts as a request in flight, in
/// which case its tokens stay held with it.
#[derive(Debug)]
pub(super) struct Grants {
    /// Random per process, so that ids of other processes are rejected.
    secret: RandomState,
    next: AtomicU64,
    held: Arc<HeldPermits>,
    /// `serve.reservation_ttl`.
    ttl: Duration,
    returned: Mutex<ReturnedGrants>,
}

/// The error for a server that holds its maximum number of grants.
#[derive(Debug)]
pub(super) struct GrantLimitReached;

impl Grants {
    pub(super) fn new(max_held: usize, ttl: Duration) -> Self {
        let (held, returned) = (Arc::new(HeldPermits::new(max_held)), Mutex::default());
        Self { secret: RandomState::new(), next: AtomicU64::new(1), held, ttl, returned }
    }

    /// Returns the permits that are held.
    pub(super) fn held(&self) -> Arc<HeldPermits> {
        Arc::clone(&self.held)
    }

    /// Drops expired records of returned grants.
    pub(super) fn sweep(&self, now: Timestamp) {
        self.returned.lock().sweep(now);
    }

    /// Turns a permit into an id. Tokens are charged now, even if the grant is returned later, because
    /// their actual number is never reported.
    pub(super) fn issue(
        &self,
        limiter: &Limiter,
        mut permit: Permit,
        key: &str,
        tokens: u64,
    ) -> Result<Bytes, GrantLimitReached> {
        if tokens > 0 {
            permit.settle_early(&Dimension::Tokens, tokens);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let ticket = match permit.into_ticket() {
            Ok(ticket) => Some(ticket),
            Err(permit) => {
                self.hold(limiter, number, permit, key, tokens)?;
                None
            }
        };
        Ok(GrantId { number, ticket, tokens }.format(key, &self.secret))
    }

    /// Returns the quota of an active grant, once.
    pub(super) fn return_grant(
        &self,
        limiter: &Limiter,
        key: &str,
        text: &str,
    ) -> Result<(), ReturnError> {
        let id = GrantId::parse(text, key, &self.secret).ok_or(ReturnError::AlreadyReturned)?;
        let Some(ticket) = id.ticket else {
            let held = self.held.remove(id.number, limiter.now());
            return held.map(Permit::release).ok_or(ReturnError::AlreadyReturned);
        };
        let limits = limiter.stats(key).limits;
        let (now, until) = (limiter.now(), ticket.granted_at + longest_window(&limits));
        if until <= now {
            return Err(ReturnError::AlreadyReturned);
        }
        self.returned.lock().record(self.secret.hash_one(key), id.number, until, now)?;
        let returned = seam::return_ticket(limiter, key, &cost(id.tokens), ticket);
        returned.then_some(()).ok_or(ReturnError::AlreadyReturned)
    }

    fn hold(
        &self,
        limiter: &Limiter,
        number: u64,
        permit: Permit,
        key: &str,
        tokens: u64,
    ) -> Result<(), GrantLimitReached> {
        let limits = limiter.stats(key).limits;
        let in_flight = limits.iter().any(|limit| limit.dimension == Dimension::Concurrency);
        let lifetime = match in_flight {
            true => self.ttl,
            // The store charges a permit when it ends, which must be now.
            false if seam::is_remote(&permit) && tokens > 0 => return Ok(()),
            false => self.ttl.min(longest_window(&limits)),
        };
        let until = permit.granted_at() + lifetime;
        match self.held.insert(number, until, permit) {
            Err(permit) if in_flight => {
                permit.release();
                Err(GrantLimitReached)
            }
            // The grant cannot be returned.
            _ => Ok(()),
        }
    }
}

/// Returns the cost of a request with this number of tokens.
pub(super) fn cost(tokens: u64) -> Cost {
    Cost::new().tokens(tokens)
}

/// Returns the longest window of the limits.
fn longest_window(limits: &[LimitStats]) -> Duration {
    let timed = limits.iter().filter(|limit| limit.dimension != Dimension::Concurrency);
    let timed = timed.filter(|limit| !limit.window.is_endless());
    timed.map(|limit| limit.window.as_duration()).max().unwrap_or_default()
}
