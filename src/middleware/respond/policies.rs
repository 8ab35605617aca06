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
use crate::limiter::Figures;
use crate::middleware::ScopeKey;
use crate::quota::{Dimension, Key, Limit, Window};

/// The texts that the names and the limits of a request's keys fix: the value of `RateLimit-Policy`,
/// and in it the names of the policies.
#[derive(Debug)]
pub(super) struct Policies {
    scopes: SmallVec<[Scope; 2]>,
    /// `None` where nothing is limited.
    value: Option<HeaderValue>,
    names: SmallVec<[Range<usize>; 4]>,
}

/// The part of a key that the texts depend on.
#[derive(Debug)]
struct Scope {
    name: Key,
    /// The limits, which are compared by their address: while this reference lives, no others have it.
    rules: Option<Arc<[Rule]>>,
}

impl Policies {
    /// Writes the texts of these keys, each with its figures.
    pub(super) fn new(keys: &[ScopeKey], figures: &[Figures]) -> Self {
        let (mut text, mut names) = (Vec::with_capacity(ROOM), SmallVec::new());
        for (index, figures) in figures.iter().enumerate() {
            for limit in figures.rules().iter().map(Rule::limit) {
                if !text.is_empty() {
                    text.extend_from_slice(b", ");
                }
                let start = text.len();
                name(&mut text, keys, index, limit);
                names.push(start..text.len());
                parameters(&mut text, limit);
            }
        }
        let scope = |(key, figures): (&ScopeKey, &Figures)| Scope {
            name: key.name().into(),
            rules: figures.rules.clone(),
        };
        let scopes = keys.iter().zip(figures).map(scope).collect();
        Self { scopes, value: header(Bytes::from(text)), names }
    }

    /// Returns the value of `RateLimit-Policy`; `None` where nothing is limited.
    pub(super) fn value(&self) -> Option<HeaderValue> {
        self.value.clone()
    }

    /// Returns the names of the policies in quotes, in the order of the keys and of their limits.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let text = self.value.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
        self.names.iter().filter_map(|name| text.get(name.clone()))
    }

    fn are_of(&self, keys: &[ScopeKey], figures: &[Figures]) -> bool {
        let is_same = |((scope, key), figures): ((&Scope, &ScopeKey), &Figures)| {
            address(scope.rules.as_ref()) == address(figures.rules.as_ref())
                && scope.name == key.name()
        };
        self.scopes.len() == keys.len() && self.scopes.iter().zip(keys).zip(figures).all(is_same)
    }
}

/// The texts of the requests that a layer has answered lately. A quota that changes makes other
/// limits, so that a text is never out of date; each takes the place of another, so that there are
/// never more than a few.
#[derive(Debug)]
pub(super) struct PolicyCache([Mutex<Option<Arc<Policies>>>; PLACES]);

impl PolicyCache {
    /// Returns the texts of these keys, each with its figures.
    pub(super) fn get(&self, keys: &[ScopeKey], figures: &[Figures]) -> Arc<Policies> {
        let mut kept = self.0[place(keys, figures)].lock();
        if let Some(policies) = kept.as_ref().filter(|policies| policies.are_of(keys, figures)) {
            return Arc::clone(policies);
        }
        Arc::clone(kept.insert(Arc::new(Policies::new(keys, figures))))
    }
}

impl Default for PolicyCache {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

fn place(keys: &[ScopeKey], figures: &[Figures]) -> usize {
    let mut hasher = FixedState::default().build_hasher();
    for (key, figures) in keys.iter().zip(figures) {
        hasher.write(key.name().as_bytes());
        hasher.write_usize(address(figures.rules.as_ref()));
    }
    hasher.finish() as usize % PLACES
}

fn address(rules: Option<&Arc<[Rule]>>) -> usize {
    rules.map_or(0, |rules| Arc::as_ptr(rules).addr())
}

/// Writes a policy's name in quotes: that of its key, as far as it may be shown, and what is limited,
/// such as `"peer-rpm"`.
fn name(text: &mut Vec<u8>, keys: &[ScopeKey], index: usize, limit: &Limit) {
    let scope = keys[index].name();
    text.push(b'"');
    push(text, scope);
    // Two keys of one name are told apart by their number.
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
            push(text, &format!("-per-{:?}", limit.window().as_duration()));
        }
    }
    text.push(b'"');
}

/// Writes a limit's amount, its unit and its window.
fn parameters(text: &mut Vec<u8>, limit: &Limit) {
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
    // The draft knows whole seconds alone.
    let nanos = limit.window().as_nanos();
    if *limit.dimension() != Dimension::Concurrency && nanos.is_multiple_of(SECOND) {
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

/// The number of texts that a layer keeps: more than it has combinations of scopes and quotas, as a rule.
const PLACES: usize = 64;

/// The bytes of three policies.
const ROOM: usize = 128;
