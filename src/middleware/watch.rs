use std::fmt;

use compact_str::CompactString;
use http::{HeaderMap, StatusCode};

use super::journey::Journey;
use crate::limiter::{Limiter, Permit, RateLimited};
use crate::provider::{ApiError, Class, Profile, Scanner};
use crate::quota::Cost;

/// A reservation on its way: released if it never left, kept as charged if it did.
#[derive(Debug)]
pub(super) struct Passage {
    permit: Option<Permit>,
    sent: bool,
}

impl Passage {
    pub(super) fn new(permit: Permit) -> Self {
        Self { permit: Some(permit), sent: false }
    }

    /// From here on a drop keeps the charge.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// It turned out that it never left.
    pub(super) fn never_left(mut self) {
        self.sent = false;
    }

    pub(super) fn arrive(mut self) -> Option<Permit> {
        self.permit.take()
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        match self.permit.take() {
            Some(permit) if !self.sent => permit.release(),
            kept => drop(kept),
        }
    }
}

/// Goes with a response to its end, and settles its reservation when it is dropped there.
pub struct Watch {
    permit: Option<Permit>,
    limiter: Limiter,
    key: CompactString,
    discover: bool,
    journey: Option<Journey>,
    reading: Option<Reading>,
    charged: Option<Cost>,
}

/// What is read out of a body as it passes.
enum Reading {
    /// A success: its usage, or the error in it.
    Usage(Profile, Box<Scanner>),
    /// A refusal: the beginning of its body.
    Error(Profile, StatusCode, HeaderMap, Vec<u8>),
}

impl Watch {
    pub(super) fn new(
        permit: Option<Permit>,
        limiter: Limiter,
        key: CompactString,
        discover: bool,
        journey: Option<Journey>,
    ) -> Self {
        Self { permit, limiter, key, discover, journey, reading: None, charged: None }
    }

    /// What the request was charged, where that is already known.
    pub fn charged(&mut self, charge: Cost) {
        self.charged = Some(charge);
    }

    /// Reads a response's head: its limits, whether it is a refusal, and what to look for in its
    /// body.
    pub fn head(&mut self, profile: Profile, status: StatusCode, headers: &HeaderMap) {
        if self.discover {
            let limits = profile.limits(headers);
            if !limits.is_empty() || status.is_success() {
                self.limiter.learn(&self.key, &limits);
            }
        }
        if status.as_u16() >= 400 {
            if is_refusal(status) {
                let delay = profile.retry_delay(headers, b"", self.limiter.now());
                self.limiter.on_rate_limited(&self.key, &RateLimited::new(delay));
            }
            self.reading = Some(Reading::Error(profile, status, headers.clone(), Vec::new()));
        } else if is_plain(headers) {
            let kind = headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
            self.reading = Some(Reading::Usage(profile, Box::new(Scanner::new(profile, kind))));
        }
    }

    /// The next bytes of the body.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match &mut self.reading {
            Some(Reading::Usage(_, scanner)) => scanner.feed(bytes),
            Some(Reading::Error(.., body)) => {
                let room = LONGEST_ERROR.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..room.min(bytes.len())]);
            }
            None => {}
        }
    }

    /// What an error's body adds to its head: a longer delay than the headers told.
    fn refused(&self, profile: Profile, status: StatusCode, headers: &HeaderMap, body: &[u8]) {
        if is_refusal(status) && profile.classify(status, headers, body) == Class::Transient {
            let delay = profile.retry_delay(headers, body, self.limiter.now());
            if delay.is_some() {
                self.limiter.on_rate_limited(&self.key, &RateLimited::new(delay));
            }
        }
    }

    fn in_band(&self, profile: Profile, error: &ApiError) {
        if profile.classify_in_band(error) == Class::Transient {
            let delay = profile.retry_delay(
                &HeaderMap::new(),
                error.message().as_bytes(),
                self.limiter.now(),
            );
            self.limiter.on_rate_limited(&self.key, &RateLimited::new(delay));
        }
    }

    /// What the body came to, and what the request is charged for it.
    fn end(&mut self) {
        let (mut usage, mut failure) = (None, None);
        match self.reading.take() {
            Some(Reading::Usage(profile, scanner)) => {
                let scanned = scanner.finish();
                if let (Some(read), Some(permit)) = (&scanned.usage, &self.permit) {
                    self.charged.get_or_insert(profile.charge(permit.cost(), read));
                }
                if let Some(error) = &scanned.error {
                    self.in_band(profile, error);
                }
                (usage, failure) = (scanned.usage, scanned.error);
            }
            Some(Reading::Error(profile, status, headers, body)) => {
                self.refused(profile, status, &headers, &body);
            }
            None => {}
        }
        let Some(permit) = self.permit.take() else { return };
        let charge = self.charged.take().unwrap_or_else(|| permit.cost().clone());
        if let Some(journey) = &self.journey {
            journey.write(|facts| {
                (facts.usage, facts.error) = (usage, failure);
                facts.charged = Some(charge.clone());
            });
        }
        permit.settle(&charge);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("key", &self.key).finish_non_exhaustive()
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 503 | 529)
}

/// A compressed body passes through unread; its reservation stays as it was.
fn is_plain(headers: &HeaderMap) -> bool {
    let encoding = headers.get(http::header::CONTENT_ENCODING);
    encoding.is_none_or(|encoding| encoding == "identity")
}

/// As much of an error's body as is read, in bytes.
const LONGEST_ERROR: usize = 16 * 1_024;
