use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::policies::{Policies, PolicyCache, SECOND};
use super::text::{header, parameter};
use crate::Timestamp;
use crate::engine::{Level, Rule};
use crate::limiter::Limiter;
use crate::middleware::ScopeKey;
use crate::quota::{Cost, Dimension};
use paceline_limiter::seam::{self, LimitLevels};

/// The header fields `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11,
/// for the current limits of a request.
pub(super) struct Fields<'a> {
    policies: Arc<Policies>,
    levels: &'a [LimitLevels],
}

/// The cost of a refused request and the number of seconds until a retry can succeed.
#[derive(Clone, Copy)]
pub(super) struct RefusedCost<'a> {
    pub(super) cost: &'a Cost,
    pub(super) seconds: Option<u64>,
}

/// Returns the current levels of `keys`, in order. A repeated key has empty levels.
pub(super) fn levels(limiter: &Limiter, keys: &[ScopeKey]) -> SmallVec<[LimitLevels; 2]> {
    let levels = |(index, key): (usize, &ScopeKey)| {
        let repeated = keys[..index].iter().any(|other| other.as_str() == key.as_str());
        if repeated { LimitLevels::default() } else { seam::limit_levels(limiter, key.as_str()) }
    };
    keys.iter().enumerate().map(levels).collect()
}

impl<'a> Fields<'a> {
    /// Creates the fields of `keys`, with one entry in `levels` per key. Uses `cache`, which layers
    /// have, for the policy texts.
    pub(super) fn new(
        keys: &[ScopeKey],
        levels: &'a [LimitLevels],
        cache: Option<&PolicyCache>,
    ) -> Self {
        let policies = match cache {
            Some(cache) => cache.get(keys, levels),
            None => Arc::new(Policies::new(keys, levels)),
        };
        Self { policies, levels }
    }

    /// Appends the fields to the headers of a response, or does nothing if no limit applies. Keeps
    /// fields of the same names that another layer has written.
    pub(super) fn append(&self, headers: &mut HeaderMap) {
        let Some(policy) = self.policy() else { return };
        let mut text = Vec::with_capacity(CAPACITY);
        self.write_limits(&mut text, None);
        headers.append(POLICY, policy);
        if let Some(limits) = header(Bytes::from(text)) {
            headers.append(LIMIT, limits);
        }
    }

    /// Returns the value of `RateLimit-Policy`, or `None` if no limit applies.
    pub(super) fn policy(&self) -> Option<HeaderValue> {
        self.policies.value()
    }

    /// Writes the value of `RateLimit`.
    pub(super) fn write_limits(&self, text: &mut Vec<u8>, refusal: Option<RefusedCost<'_>>) {
        let start = text.len();
        self.each(|name, now, rule, level| {
            if text.len() > start {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(name);
            parameter(text, b";r=", level.available);
            let violated = refusal.filter(|refusal| is_exceeded(rule, level, refusal.cost));
            if let Some(seconds) = violated.and_then(|refusal| refusal.seconds) {
                parameter(text, b";t=", seconds);
            } else if *rule.dimension() != Dimension::Concurrency && !seam::is_total(rule) {
                parameter(text, b";t=", effective_window(rule, level, now));
            }
        });
    }

    /// Writes the names of the policies that cannot cover `cost`, as the elements of a JSON array.
    pub(super) fn write_violated(&self, text: &mut Vec<u8>, cost: &Cost) {
        let start = text.len();
        self.each(|name, _, rule, level| {
            if is_exceeded(rule, level, cost) {
                if text.len() > start {
                    text.push(b',');
                }
                text.extend_from_slice(name);
            }
        });
    }

    fn each(&self, mut visit: impl FnMut(&[u8], Timestamp, &Rule, &Level)) {
        let mut names = self.policies.names();
        for levels in self.levels {
            for ((rule, level), name) in levels.limits().zip(&mut names) {
                visit(name, levels.at, rule, level);
            }
        }
    }
}

fn is_exceeded(rule: &Rule, level: &Level, cost: &Cost) -> bool {
    rule.amount(cost) > level.available
}

/// Returns the effective window in seconds, rounded up: the time over which the remaining amount
/// should be spread.
///
/// The window lasts until the limit is unused again, and at least as long as the limit takes to refill
/// the remaining amount.
fn effective_window(rule: &Rule, level: &Level, now: Timestamp) -> u64 {
    let (amount, window) = (rule.limit().amount(), rule.limit().window().as_nanos());
    let fresh = seam::nanos_since(level.fresh_at, now);
    let remaining = level.available.min(amount);
    let refill = match remaining.checked_mul(window) {
        Some(product) => product / amount.max(1),
        None => {
            let refill = u128::from(remaining) * u128::from(window) / u128::from(amount.max(1));
            u64::try_from(refill).unwrap_or(u64::MAX)
        }
    };
    fresh.max(refill).div_ceil(SECOND)
}

pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The length of a `RateLimit` field with three limits, in bytes.
const CAPACITY: usize = 128;
