use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use crate::limiter::{KeyStats, LimitStats, Limiter};
use crate::middleware::Key;
use crate::quota::{Cost, Dimension, Window};

/// The limits of a request as they stand, as the fields `RateLimit-Policy` and `RateLimit` of
/// draft-ietf-httpapi-ratelimit-headers-11 tell them.
pub(super) struct Fields<'a> {
    keys: &'a [Key],
    stats: SmallVec<[KeyStats; 2]>,
    now: u64,
}

/// A refused request: what it would have taken, and for how many seconds it is refused.
#[derive(Clone, Copy)]
pub(super) struct Refusal<'a> {
    pub(super) cost: &'a Cost,
    pub(super) seconds: Option<u64>,
}

impl<'a> Fields<'a> {
    /// As they stand at this time, in nanoseconds since the epoch.
    pub(super) fn of(limiter: &Limiter, keys: &'a [Key], now: u64) -> Self {
        let stats = |index: usize| {
            let key = keys[index].as_str();
            // One that is named twice counts once.
            let again = keys[..index].iter().any(|other| other.as_str() == key);
            if again { KeyStats::default() } else { limiter.stats(key) }
        };
        let stats = (0..keys.len()).map(stats).collect();
        Self { keys, stats, now }
    }

    /// Appends the fields of an answer; none where nothing is limited.
    pub(super) fn append(&self, headers: &mut HeaderMap) {
        let mut text = Vec::with_capacity(ROOM);
        self.policies(&mut text);
        let middle = text.len();
        self.limits(&mut text, None);
        let text = Bytes::from(text);
        append(headers, POLICY, text.slice(..middle));
        append(headers, LIMIT, text.slice(middle..));
    }

    /// Writes the value of `RateLimit-Policy`.
    pub(super) fn policies(&self, text: &mut Vec<u8>) {
        self.list(text, |text, limit| {
            number(text, b";q=", limit.limit);
            match &limit.dimension {
                Dimension::Requests => {}
                Dimension::Concurrency => text.extend_from_slice(b";qu=\"concurrent-requests\""),
                dimension => {
                    text.extend_from_slice(b";qu=\"");
                    push(text, dimension.as_str());
                    text.push(b'"');
                }
            }
            if let Some(seconds) = whole_seconds(limit) {
                number(text, b";w=", seconds);
            }
        });
    }

    /// Writes the value of `RateLimit`.
    pub(super) fn limits(&self, text: &mut Vec<u8>, refusal: Option<Refusal<'_>>) {
        self.list(text, |text, limit| {
            number(text, b";r=", limit.available);
            let violated = refusal.filter(|refusal| is_short(limit, refusal.cost));
            if let Some(seconds) = violated.and_then(|refusal| refusal.seconds) {
                number(text, b";t=", seconds);
            } else if limit.dimension != Dimension::Concurrency {
                number(text, b";t=", self.effective(limit));
            }
        });
    }

    /// Writes the names of the policies that don't hold `cost`, as the elements of a JSON array.
    pub(super) fn violated(&self, text: &mut Vec<u8>, cost: &Cost) {
        let start = text.len();
        self.each(|index, limit| {
            if is_short(limit, cost) {
                if text.len() > start {
                    text.push(b',');
                }
                self.name(text, index, limit);
            }
        });
    }

    fn list(&self, text: &mut Vec<u8>, parameters: impl Fn(&mut Vec<u8>, &LimitStats)) {
        let start = text.len();
        self.each(|index, limit| {
            if text.len() > start {
                text.extend_from_slice(b", ");
            }
            self.name(text, index, limit);
            parameters(text, limit);
        });
    }

    fn each(&self, mut visit: impl FnMut(usize, &LimitStats)) {
        for (index, stats) in self.stats.iter().enumerate() {
            stats.limits.iter().for_each(|limit| visit(index, limit));
        }
    }

    /// Writes a policy's name in quotes: that of its scope, as far as it may be shown, and what is
    /// limited, such as `"peer-rpm"`.
    fn name(&self, text: &mut Vec<u8>, index: usize, limit: &LimitStats) {
        let scope = self.keys[index].name();
        text.push(b'"');
        push(text, scope);
        // Two scopes of one name are told apart by their number.
        if self.keys[..index].iter().any(|key| key.name() == scope) {
            number(text, b"", index as u64 + 1);
            text.push(b'-');
        } else if !scope.is_empty() {
            text.push(b'-');
        }
        match short_name(limit) {
            Some(name) => text.extend_from_slice(name.as_bytes()),
            None => {
                push(text, limit.dimension.as_str());
                push(text, &format!("-per-{:?}", limit.window.as_duration()));
            }
        }
        text.push(b'"');
    }

    /// The seconds, rounded up, within which no more than what is left should be used: until the
    /// limit is unused again, and at least so many that what is left comes at the limit's own pace.
    fn effective(&self, limit: &LimitStats) -> u64 {
        let fresh = limit.fresh_at.saturating_sub(self.now);
        let left = u128::from(limit.available.min(limit.limit));
        let paced = left * u128::from(limit.window.as_nanos()) / u128::from(limit.limit.max(1));
        let paced = u64::try_from(paced).unwrap_or(u64::MAX);
        fresh.max(paced).div_ceil(SECOND)
    }
}

/// Appends one more line, unless it is empty: another layer may have written the same field.
fn append(headers: &mut HeaderMap, name: HeaderName, value: Bytes) {
    if let Some(value) = header(value) {
        headers.append(name, value);
    }
}

/// A field's value; `None` if there is nothing to say.
pub(super) fn header(value: Bytes) -> Option<HeaderValue> {
    let told = !value.is_empty();
    told.then(|| HeaderValue::from_maybe_shared(value).ok()).flatten()
}

fn is_short(limit: &LimitStats, cost: &Cost) -> bool {
    cost.amount(&limit.dimension) > limit.available
}

fn short_name(limit: &LimitStats) -> Option<&'static str> {
    Some(match (&limit.dimension, limit.window) {
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

/// The window, where the draft can tell it.
fn whole_seconds(limit: &LimitStats) -> Option<u64> {
    let nanos = limit.window.as_nanos();
    let told = limit.dimension != Dimension::Concurrency && nanos.is_multiple_of(SECOND);
    told.then_some(nanos / SECOND)
}

/// A name and an integer; the greatest that a structured field holds has fifteen digits.
fn number(text: &mut Vec<u8>, name: &[u8], amount: u64) {
    text.extend_from_slice(name);
    text.extend_from_slice(itoa::Buffer::new().format(amount.min(GREATEST)).as_bytes());
}

/// Part of a string in a structured field, which is also one in JSON: visible ASCII, without quotes
/// and backslashes.
fn push(text: &mut Vec<u8>, part: &str) {
    let is_safe = |byte: u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f | 0x7f..);
    if part.bytes().all(is_safe) {
        text.extend_from_slice(part.as_bytes());
    } else {
        text.extend(part.bytes().map(|byte| if is_safe(byte) { byte } else { b'_' }));
    }
}

pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

const GREATEST: u64 = 999_999_999_999_999;
const SECOND: u64 = 1_000_000_000;

/// What both fields of three limits take, in bytes.
const ROOM: usize = 256;
