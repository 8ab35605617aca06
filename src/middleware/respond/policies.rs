use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::FixedState;
use http::HeaderValue;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::text::{header, number, parameter, push};
use crate::engine::Rule;
use crate::middleware::ScopeKey;
use crate::quota::{Dimension, Key, Limit, Window};
use paceline_limiter::seam::LimitLevels;

/// The value of `RateLimit-Policy` for the keys of a request, and the positions of the policy names in
/// it. Depends only on the names and the limits of the keys.
#[derive(Debug)]
pub(super) struct Policies {
    scopes: SmallVec<[PolicyScope; 2]>,
    /// `None` if no limit applies.
    value: Option<HeaderValue>,
    names: SmallVec<[Range<usize>; 4]>,
}

/// The part of a key that determines its policies.
#[derive(Debug)]
struct PolicyScope {
    name: Key,
    /// The limits, compared by address, which stays unique while this reference is held.
    rules: Option<Arc<[Rule]>>,
}

impl Policies {
    /// Formats the policies of `keys`, with one entry in `levels` per key.
    pub(super) fn new(keys: &[ScopeKey], levels: &[LimitLevels]) -> Self {
        let (mut text, mut names) = (Vec::with_capacity(CAPACITY), SmallVec::new());
        for (index, levels) in levels.iter().enumerate() {
            for limit in levels.rules().iter().map(Rule::limit) {
                if !text.is_empty() {
                    text.extend_from_slice(b", ");
                }
                let start = text.len();
                write_name(&mut text, keys, index, limit);
                names.push(start..text.len());
                write_parameters(&mut text, limit);
            }
        }
        let scope = |(key, levels): (&ScopeKey, &LimitLevels)| PolicyScope {
            name: key.name().into(),
            rules: levels.rules.clone(),
        };
        let scopes = keys.iter().zip(levels).map(scope).collect();
        Self { scopes, value: header(Bytes::from(text)), names }
    }

    /// Returns the value of `RateLimit-Policy`, or `None` if no limit applies.
    pub(super) fn value(&self) -> Option<HeaderValue> {
        self.value.clone()
    }

    /// Returns the names of the policies in quotes, in the order of the keys and of their limits.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let text = self.value.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
        self.names.iter().filter_map(|name| text.get(name.clone()))
    }

    fn matches(&self, keys: &[ScopeKey], levels: &[LimitLevels]) -> bool {
        let is_same = |((scope, key), levels): ((&PolicyScope, &ScopeKey), &LimitLevels)| {
            address(scope.rules.as_ref()) == address(levels.rules.as_ref())
                && scope.name == key.name()
        };
        self.scopes.len() == keys.len() && self.scopes.iter().zip(keys).zip(levels).all(is_same)
    }
}

/// A cache of the policies that a layer has sent recently.
///
/// A changed quota has new limits, so an entry is never stale. The number of entries is fixed, and a
/// new one replaces the old one of the same hash.
#[derive(Debug)]
pub(super) struct PolicyCache([Mutex<Option<Arc<Policies>>>; ENTRIES]);

impl PolicyCache {
    /// Returns the policies of `keys`, with one entry in `levels` per key.
    pub(super) fn get(&self, keys: &[ScopeKey], levels: &[LimitLevels]) -> Arc<Policies> {
        let mut entry = self.0[entry_index(keys, levels)].lock();
        if let Some(policies) = entry.as_ref().filter(|policies| policies.matches(keys, levels)) {
            return Arc::clone(policies);
        }
        Arc::clone(entry.insert(Arc::new(Policies::new(keys, levels))))
    }
}

impl Default for PolicyCache {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

fn entry_index(keys: &[ScopeKey], levels: &[LimitLevels]) -> usize {
    let mut hasher = FixedState::default().build_hasher();
    for (key, levels) in keys.iter().zip(levels) {
        hasher.write(key.name().as_bytes());
        hasher.write_usize(address(levels.rules.as_ref()));
    }
    hasher.finish() as usize % ENTRIES
}

fn address(rules: Option<&Arc<[Rule]>>) -> usize {
    rules.map_or(0, |rules| Arc::as_ptr(rules).addr())
}

/// Writes the quoted name of a policy, such as `"peer-rpm"`: the public part of the key's name and the
/// short name of the limit.
fn write_name(text: &mut Vec<u8>, keys: &[ScopeKey], index: usize, limit: &Limit) {
    let scope = keys[index].name();
    text.push(b'"');
    push(text, scope);
    // A number distinguishes keys of the same name.
    if keys[..index].iter().any(|key| key.name() == scope) {
        number(text, index as u64 + 1);
        text.push(b'-');
    } else if !scope.is_empty() {
        text.push(b'-');
    }
    match short_name(limit) {
        Some(name) => text.extend_from_slice(name.as_bytes()),
        None => {
            push(text, limit.dimension().as_str());
            match limit.window().is_endless() {
                true => push(text, "-total"),
                false => push(text, &format!("-per-{:?}", limit.window().as_duration())),
            }
        }
    }
    text.push(b'"');
}

/// Writes a limit's amount, its unit and its window.
fn write_parameters(text: &mut Vec<u8>, limit: &Limit) {
    parameter(text, b";q=", limit.amount());
    match limit.dimension() {
        Dimension::Requests => {}
        Dimension::Concurrency => text.extend_from_slice(b";qu=\"concurrent-requests\""),
        dimension => {
            text.extend_from_slice(b";qu=\"");
            push(text, dimension.as_str());
            text.push(b'"');
        }
    }
    // The draft allows only whole seconds.
    let nanos = limit.window().as_nanos();
    let has_window = *limit.dimension() != Dimension::Concurrency && !limit.window().is_endless();
    if has_window && nanos.is_multiple_of(SECOND) {
        parameter(text, b";w=", nanos / SECOND);
    }
}

fn short_name(limit: &Limit) -> Option<&'static str> {
    Some(match (limit.dimension(), limit.window()) {
        (Dimension::Concurrency, _) => "concurrency",
        (Dimension::Requests, Window::MINUTE) => "rpm",
        (Dimension::Requests, Window::DAY) => "rpd",
        (Dimension::Tokens, Window::MINUTE) => "tpm",
        (Dimension::Tokens, Window::DAY) => "tpd",
        (Dimension::InputTokens, Window::MINUTE) => "itpm",
        (Dimension::OutputTokens, Window::MINUTE) => "otpm",
        _ => return None,
    })
}

pub(super) const SECOND: u64 = 1_000_000_000;

/// The number of cache entries, usually more than a layer has combinations of scopes and quotas.
const ENTRIES: usize = 64;

/// The length of three policies, in bytes.
const CAPACITY: usize = 128;
