use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::policies::{Policies, PolicyCache, SECOND};
use super::text::{header, parameter};
use crate::engine::{Level, Rule};
use crate::limiter::{Figures, Limiter};
use crate::middleware::ScopeKey;
use crate::quota::{Cost, Dimension};
use crate::timestamp::Timestamp;

/// The limits of a request as they stand, as the fields `RateLimit-Policy` and `RateLimit` of
/// draft-ietf-httpapi-ratelimit-headers-11 tell them.
pub(super) struct Fields<'a> {
    policies: Arc<Policies>,
    figures: &'a [Figures],
}

/// A refused request: what it would have taken, and for how many seconds it is refused.
#[derive(Clone, Copy)]
pub(super) struct Refusal<'a> {
    pub(super) cost: &'a Cost,
    pub(super) seconds: Option<u64>,
}

/// Returns the figures of these keys now, one for each. A key that is named twice counts once.
pub(super) fn figures(limiter: &Limiter, keys: &[ScopeKey]) -> SmallVec<[Figures; 2]> {
    let figures = |(index, key): (usize, &ScopeKey)| {
        let again = keys[..index].iter().any(|other| other.as_str() == key.as_str());
        if again { Figures::default() } else { limiter.figures(key.as_str()) }
    };
    keys.iter().enumerate().map(figures).collect()
}

impl<'a> Fields<'a> {
    /// The fields of these keys, each with its figures; a layer has a cache of texts.
    pub(super) fn new(
        keys: &[ScopeKey],
        figures: &'a [Figures],
        cache: Option<&PolicyCache>,
    ) -> Self {
        let policies = match cache {
            Some(cache) => cache.get(keys, figures),
            None => Arc::new(Policies::new(keys, figures)),
        };
        Self { policies, figures }
    }

    /// Appends the fields to those of an answer; none where nothing is limited. Another layer may have
    /// written the same fields.
    pub(super) fn append(&self, headers: &mut HeaderMap) {
        let Some(policy) = self.policy() else { return };
        let mut text = Vec::with_capacity(ROOM);
        self.limits(&mut text, None);
        headers.append(POLICY, policy);
        if let Some(limits) = header(Bytes::from(text)) {
            headers.append(LIMIT, limits);
        }
    }

    /// Returns the value of `RateLimit-Policy`; `None` where nothing is limited.
    pub(super) fn policy(&self) -> Option<HeaderValue> {
        self.policies.value()
    }

    /// Writes the value of `RateLimit`.
    pub(super) fn limits(&self, text: &mut Vec<u8>, refusal: Option<Refusal<'_>>) {
        let start = text.len();
        self.each(|name, now, rule, level| {
            if text.len() > start {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(name);
            parameter(text, b";r=", level.available);
            let violated = refusal.filter(|refusal| is_short(rule, level, refusal.cost));
            if let Some(seconds) = violated.and_then(|refusal| refusal.seconds) {
                parameter(text, b";t=", seconds);
            } else if *rule.dimension() != Dimension::Concurrency {
                parameter(text, b";t=", effective(rule, level, now));
            }
        });
    }

    /// Writes the names of the policies that don't hold `cost`, as the elements of a JSON array.
    pub(super) fn violated(&self, text: &mut Vec<u8>, cost: &Cost) {
        let start = text.len();
        self.each(|name, _, rule, level| {
            if is_short(rule, level, cost) {
                if text.len() > start {
                    text.push(b',');
                }
                text.extend_from_slice(name);
            }
        });
    }

    fn each(&self, mut visit: impl FnMut(&[u8], Timestamp, &Rule, &Level)) {
        let mut names = self.policies.names();
        for figures in self.figures {
            for ((rule, level), name) in figures.limits().zip(&mut names) {
                visit(name, figures.at, rule, level);
            }
        }
    }
}

fn is_short(rule: &Rule, level: &Level, cost: &Cost) -> bool {
    rule.amount(cost) > level.available
}

/// The seconds, rounded up, within which no more than what is left should be used: until the limit is
/// unused again, and at least so many that what is left comes at the limit's own pace.
fn effective(rule: &Rule, level: &Level, now: Timestamp) -> u64 {
    let (amount, window) = (rule.limit().amount(), rule.limit().window().as_nanos());
    let fresh = level.fresh_at.nanos_since(now);
    let left = level.available.min(amount);
    let paced = match left.checked_mul(window) {
        Some(product) => product / amount.max(1),
        None => {
            let paced = u128::from(left) * u128::from(window) / u128::from(amount.max(1));
            u64::try_from(paced).unwrap_or(u64::MAX)
        }
    };
    fresh.max(paced).div_ceil(SECOND)
}

pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The bytes of the field `RateLimit` with three limits.
const ROOM: usize = 128;
