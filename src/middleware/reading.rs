use std::fmt;

use http::{HeaderMap, HeaderValue, StatusCode};
use tracing::Span;

use super::refusal::Refusal;
use super::response_guard::ResponseGuard;
use crate::provider::{ApiError, Class, Profile, Scanned, Scanner};

/// A response on its way: its body is read as it passes, for its usage or for how long a refusal
/// asks to wait. The reservation behind it ends when it is dropped.
///
/// It is large, since it holds all that reading takes in place: to be made when there is a response,
/// and moved as little as can be.
pub struct Reading {
    body: Body,
    guard: ResponseGuard,
    /// Something is to be settled by the first usage that the body states.
    settles_early: bool,
    /// Nothing of the body is missing.
    whole: bool,
}

/// What is read out of a body as it passes.
#[expect(clippy::large_enum_variant, reason = "in place, so that a response allocates nothing")]
enum Body {
    /// A success: its usage, or the error in it.
    Success(Profile, Scanner),
    /// A refusal: the beginning of its body.
    Refusal(Box<Refusal>),
    /// Nothing that is wanted.
    Unread,
}

impl Reading {
    pub(super) fn new(
        guard: ResponseGuard,
        profile: Profile,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Self {
        let body = match () {
            () if is_refusal(status) => {
                let refusal = Refusal::new(&guard, profile, status, headers);
                match is_plain(headers) {
                    true => Body::Refusal(Box::new(refusal)),
                    // Its head is all that it says.
                    false => {
                        refusal.end(&guard);
                        Body::Unread
                    }
                }
            }
            () if status.as_u16() < 400 && is_plain(headers) => {
                Body::Success(profile, Scanner::of(profile, headers))
            }
            () => {
                if let (false, Some(encoding)) = (status.as_u16() >= 400, encoding(headers)) {
                    guard.unread(encoding);
                }
                Body::Unread
            }
        };
        let settles_early = profile.settled_early().next().is_some();
        Self { body, guard, settles_early, whole: false }
    }

    /// The next bytes of the body.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match &mut self.body {
            Body::Success(profile, scanner) => {
                scanner.feed(bytes);
                if self.settles_early
                    && let Some(usage) = scanner.usage()
                {
                    self.guard.uses(*profile, &usage);
                    self.settles_early = false;
                }
            }
            Body::Refusal(refusal) => {
                if refusal.bytes(bytes) {
                    self.finish();
                }
            }
            Body::Unread => {}
        }
    }

    /// The span of the request.
    pub(super) fn span(&self) -> Option<Span> {
        self.guard.span()
    }

    /// The body has come to its end. Where that isn't said before this is dropped, something of it is
    /// missing: usage that was stated on the way is the least that it took, and teaches nothing.
    pub fn ended(&mut self) {
        self.whole = true;
    }

    /// Ends the reservation; says what the body of a success said was wrong.
    pub(super) fn end(mut self) -> Option<Box<ApiError>> {
        self.finish()
    }

    /// Siblings are held before the reservation ends, which may let the next one in.
    fn finish(&mut self) -> Option<Box<ApiError>> {
        match std::mem::replace(&mut self.body, Body::Unread) {
            Body::Success(profile, scanner) => self.succeeded(profile, scanner.finish()),
            Body::Refusal(refusal) => {
                refusal.end(&self.guard);
                None
            }
            Body::Unread => None,
        }
    }

    fn succeeded(&mut self, profile: Profile, said: Scanned) -> Option<Box<ApiError>> {
        if let Some(usage) = &said.usage {
            // What failed in between says no more than what was cut off.
            let is_final = said.is_final || (self.whole && said.error.is_none());
            self.guard.used(profile, usage, is_final);
        }
        let error = said.error.clone().map(Box::new);
        if let Some(error) = &error {
            self.failed_in_band(profile, error);
        }
        self.guard.said(said);
        error
    }

    fn failed_in_band(&self, profile: Profile, error: &ApiError) {
        let (now, none) = (self.guard.now(), HeaderMap::new());
        let delay = profile.retry_delay(&none, error.message().as_bytes(), now);
        let class = profile.classify_in_band(error);
        if class != Class::Terminal && (delay.is_some() || is_refusal_in_band(error)) {
            self.guard.refused((delay, class, error.dimension()), None);
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.finish();
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("guard", &self.guard).finish_non_exhaustive()
    }
}

pub(super) fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 503 | 529)
}

/// Whether an error in a stream is what would have been a 429, 503 or 529 before it began.
pub(super) fn is_refusal_in_band(error: &ApiError) -> bool {
    let signs = [error.code(), error.kind()];
    signs.into_iter().flatten().any(|sign| REFUSALS.contains(&sign))
}

pub(super) fn is_plain(headers: &HeaderMap) -> bool {
    encoding(headers).is_none()
}

/// A body in an encoding of its own passes through unread.
fn encoding(headers: &HeaderMap) -> Option<&HeaderValue> {
    let encoding = headers.get(http::header::CONTENT_ENCODING)?;
    (!encoding.as_bytes().eq_ignore_ascii_case(b"identity")).then_some(encoding)
}

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
