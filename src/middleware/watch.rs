use std::fmt;

use http::{HeaderMap, StatusCode};

use super::charge::Charge;
use super::journey::Journey;
use super::keys::{Key, Keys};
use crate::limiter::{Limiter, Permit, RateLimited};
use crate::provider::{ApiError, Class, Profile, Scanned, Scanner};
use crate::quota::{Cost, Dimension};

/// Goes with a request from its admission to the end of its response, and ends its reservation when
/// it is dropped: releases it if the request never left, and else settles it.
pub struct Watch {
    permit: Option<Permit>,
    pub(super) limiter: Limiter,
    pub(super) keys: Keys,
    discover: bool,
    journey: Option<Journey>,
    floor: u64,
    sent: bool,
    reading: Option<Reading>,
    charged: Option<Cost>,
    later: Option<Charge>,
}

/// What is read out of a body as it passes.
enum Reading {
    /// A success: its usage, or the error in it.
    Success(Profile, Box<Scanner>),
    /// A refusal whose head doesn't say when to come back: the beginning of its body.
    Refusal(Profile, StatusCode, Vec<u8>),
}

impl Watch {
    pub(super) fn new(
        permit: Permit,
        limiter: Limiter,
        keys: Keys,
        discover: bool,
        journey: Option<Journey>,
    ) -> Self {
        let (permit, sent) = (Some(permit), false);
        Self {
            permit,
            limiter,
            keys,
            discover,
            journey,
            floor: 0,
            sent,
            reading: None,
            charged: None,
            later: None,
        }
    }

    /// Charges at least so many tokens, whatever the response says that it used.
    pub(super) fn with_floor(mut self, tokens: u64) -> Self {
        self.floor = tokens;
        self
    }

    /// The key that the provider's own limits belong to: the request's first.
    fn key(&self) -> &str {
        self.keys.first().map_or("", Key::as_str)
    }

    /// The request is on its way: from here on a drop keeps the charge.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// It turned out that it never left.
    pub(super) fn never_left(mut self) {
        self.sent = false;
    }

    /// What the request was charged, where that is already known.
    pub fn charged(&mut self, charge: Cost) {
        self.charged = Some(charge);
    }

    /// What the request was charged, where that is only known by the end of its response.
    pub fn charged_later(&mut self, charge: Charge) {
        self.later = Some(charge);
    }

    /// Reads a response's head: its limits, whether it is a refusal, and what to look for in its
    /// body.
    pub fn head(&mut self, profile: Profile, status: StatusCode, headers: &HeaderMap) {
        if self.discover {
            let limits = profile.limits(headers);
            if status.is_success() || limits.iter().any(|limit| limit.limit.is_some()) {
                self.limiter.learn(self.key(), &limits);
            }
        }
        let is_plain = is_plain(headers);
        if is_refusal(status) {
            let delay = profile.retry_delay(headers, b"", self.limiter.now());
            self.limiter.on_rate_limited(self.key(), &RateLimited::new(delay));
            let passes = profile.classify(status, headers, b"") != Class::Terminal;
            if delay.is_none() && passes && is_plain {
                self.reading = Some(Reading::Refusal(profile, status, Vec::new()));
            }
        } else if status.as_u16() < 400 && is_plain {
            let kind = headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
            self.reading = Some(Reading::Success(profile, Box::new(Scanner::new(profile, kind))));
        }
    }

    /// The next bytes of the body.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match &mut self.reading {
            Some(Reading::Success(_, scanner)) => scanner.feed(bytes),
            Some(Reading::Refusal(.., body)) => {
                let room = LONGEST_ERROR.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..room.min(bytes.len())]);
            }
            None => {}
        }
    }

    fn end(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        if !self.sent {
            return permit.release();
        }
        // Siblings are held before the reservation ends, which may let the next one in.
        let said = self.read(permit.cost());
        let later = || self.later.as_ref().and_then(Charge::cost);
        let charge = self.charged.take().or_else(later).unwrap_or_else(|| permit.cost().clone());
        if let Some(journey) = &self.journey {
            journey.write(|facts| {
                (facts.usage, facts.error) = (said.usage, said.error);
                facts.charged = Some(charge.clone());
            });
        }
        permit.settle(&charge);
    }

    /// What the body came to.
    fn read(&mut self, reserved: &Cost) -> Scanned {
        match self.reading.take() {
            Some(Reading::Success(profile, scanner)) => {
                let said = scanner.finish();
                if let Some(usage) = &said.usage {
                    let floor = self.floor;
                    self.charged.get_or_insert_with(|| {
                        let charge = profile.charge(reserved, usage);
                        let tokens = charge.amount(&Dimension::Tokens).max(floor);
                        charge.tokens(tokens)
                    });
                }
                if let Some(error) = &said.error {
                    self.in_band(profile, error);
                }
                return said;
            }
            Some(Reading::Refusal(profile, status, body)) => self.refused(profile, status, &body),
            None => {}
        }
        Scanned::default()
    }

    /// What a refusal's body adds to its head: a delay, unless waiting doesn't help.
    fn refused(&self, profile: Profile, status: StatusCode, body: &[u8]) {
        let delay = profile.retry_delay(&HeaderMap::new(), body, 0);
        if delay.is_some() && profile.classify(status, &HeaderMap::new(), body) != Class::Terminal {
            self.limiter.on_rate_limited(self.key(), &RateLimited::new(delay));
        }
    }

    fn in_band(&self, profile: Profile, error: &ApiError) {
        let delay = profile.retry_delay(&HeaderMap::new(), error.message().as_bytes(), 0);
        let passes = profile.classify_in_band(error) != Class::Terminal;
        if passes && (delay.is_some() || is_refusal_in_band(error)) {
            self.limiter.on_rate_limited(self.key(), &RateLimited::new(delay));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("keys", &self.keys)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 503 | 529)
}

/// Whether an error in a stream is what would have been a 429, 503 or 529 before it began.
fn is_refusal_in_band(error: &ApiError) -> bool {
    let signs = [error.code(), error.kind()];
    signs.into_iter().flatten().any(|sign| REFUSALS.contains(&sign))
}

/// A compressed body passes through unread; its reservation stays as it was.
fn is_plain(headers: &HeaderMap) -> bool {
    let encoding = headers.get(http::header::CONTENT_ENCODING);
    encoding.is_none_or(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// As much of an error's body as is read, in bytes.
const LONGEST_ERROR: usize = 16 * 1_024;

const REFUSALS: &[&str] = &[
    "429",
    "503",
    "529",
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded",
    "overloaded_error",
];
