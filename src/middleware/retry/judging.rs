use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;

use super::judge::{Judged, Verdict};
use crate::Timestamp;
use crate::limiter::Sleep;
use crate::middleware::error_body::LONGEST_ERROR;
use crate::middleware::forwarding_body::ForwardingBody;
use crate::middleware::read_ahead::{End, ReadAhead};
use crate::middleware::response_head::is_plain;
use crate::middleware::{ResponseBody, ResponseGuard};
use crate::provider::{ApiError, Class, InvalidAnswer, Profile, Refusal, RefusalKind};
use paceline_limiter::seam::{self, LONGEST_OF_RATE};

/// A future that reads an HTTP response ahead until the retry verdict is known. It needs a tokio runtime with
/// timers, since it waits for the body for a limited time.
pub struct Judging<B: Body<Data = Bytes>> {
    response: Option<(Parts, Box<ReadAhead<ForwardingBody<B>>>)>,
    profile: Profile,
    answered_at: Timestamp,
    ahead: Ahead,
    /// The end of reading ahead, when the verdict is based on the bytes read so far.
    timeout: Option<Sleep>,
}

/// How much of a body is read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    All,
    Error,
    /// The first event of a stream or the first object of another body, which may be an error.
    FirstEvent,
}

impl<B: Body<Data = Bytes>> Judging<B> {
    /// Starts to judge a response.
    ///
    /// Reads a bounded part of an error, or of a success up to its first event, for a few seconds, and all of a success if
    /// `whole` is set, but nothing after the deadline. A response whose body can't be read goes to the caller immediately.
    pub(crate) fn of(
        response: Response<B>,
        guard: ResponseGuard,
        profile: Profile,
        whole: bool,
        deadline: Option<Timestamp>,
    ) -> Judged<Response<ResponseBody<B>>, Self> {
        let (answered_at, limiter) = (guard.now(), guard.limiter().clone());
        let is_head = guard.answers_head();
        let (mut parts, body) = response.into_parts();
        let body = ForwardingBody::of_response(&mut parts, body, guard, profile);
        let ahead = match parts.status.as_u16() {
            400.. => Ahead::Error,
            _ if whole && !is_head => Ahead::All,
            _ if body.first_event().is_none() => Ahead::FirstEvent,
            _ => return Judged::Passed(Response::from_parts(parts, ResponseBody::new(body))),
        };
        let response = Some((parts, Box::new(ReadAhead::new(body))));
        let read_end = (ahead != Ahead::All).then(|| answered_at + LONGEST_READ);
        let end = [read_end, deadline].into_iter().flatten().min();
        let timeout = end.map(|end| seam::sleep_until(&limiter, end));
        Judged::Judging(Self { response, profile, answered_at, ahead, timeout })
    }

    /// Completes when enough of the body has been read, or at the end of the time for it.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (_, body) = self.response.as_mut().expect(ONCE);
        let polled = match self.ahead {
            Ahead::All => body.poll_ahead(None, |_| false, cx),
            Ahead::Error => body.poll_ahead(Some(LONGEST_AHEAD), |_| false, cx),
            Ahead::FirstEvent => {
                let is_known = |body: &mut ReadAhead<ForwardingBody<B>>| {
                    body.body().is_none_or(|body| body.first_event().is_some())
                };
                body.poll_ahead(Some(LONGEST_FIRST_EVENT), is_known, cx)
            }
        };
        match (polled, &mut self.timeout) {
            (Poll::Pending, Some(timeout)) => timeout.as_mut().poll(cx),
            (polled, _) => polled,
        }
    }

    fn verdict(&self, parts: &Parts, body: &mut ReadAhead<ForwardingBody<B>>) -> Verdict {
        let is_success = parts.status.as_u16() < 400;
        let is_broken = is_success && body.end() == Some(End::Broken);
        // The provider may have served another request, such as one that creates a batch.
        if is_broken && (self.ahead == Ahead::All || is_stream(&parts.headers)) {
            return Verdict::Retry(None);
        }
        let in_band = body.body().and_then(|body| match self.ahead {
            Ahead::FirstEvent => body.first_event()?.err().cloned(),
            _ => body.error().cloned(),
        });
        if let Some(error) = in_band {
            return self.judge_in_band(&error);
        }
        match is_success {
            true if self.ahead == Ahead::All
                && body.end().is_some()
                && is_invalid_answer(parts, body) =>
            {
                Verdict::Retry(None)
            }
            true => Verdict::Final,
            false => self.judge_error(parts, &body.beginning(LONGEST_ERROR)),
        }
    }

    fn judge_error(&self, parts: &Parts, body: &[u8]) -> Verdict {
        let Parts { status, headers, .. } = parts;
        let class = self.profile.classify(*status, headers, body);
        let refusal = self.profile.refusal(*status, headers, body, self.answered_at);
        match refusal {
            Some(refusal) => verdict(class, &refusal),
            None => {
                let delay = self.profile.retry_delay(headers, b"", self.answered_at);
                retry(class, delay)
            }
        }
    }

    fn judge_in_band(&self, error: &ApiError) -> Verdict {
        let class = self.profile.classify_in_band(error);
        let refusal = self.profile.refusal_in_band(error, self.answered_at);
        refusal.map_or_else(|| retry(class, None), |refusal| verdict(class, &refusal))
    }
}

impl<B: Body<Data = Bytes>> Future for Judging<B> {
    type Output = (Response<ResponseBody<B>>, Verdict);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.poll_ahead(cx));
        let (parts, mut body) = self.response.take().expect(ONCE);
        let verdict = self.verdict(&parts, &mut body);
        if let (Verdict::Retry(_) | Verdict::Requeue(_), Some(body)) = (verdict, body.body()) {
            body.end();
        }
        body.drop_ended_body();
        Poll::Ready((Response::from_parts(parts, ResponseBody::buffered(body)), verdict))
    }
}

impl<B: Body<Data = Bytes>> fmt::Debug for Judging<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judging").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// Returns true if a complete 200 response has an invalid body.
///
/// A body with a content encoding counts as valid, and so does a body with a text content type, such
/// as a transcript.
fn is_invalid_answer<B: Body<Data = Bytes>>(
    parts: &Parts,
    body: &ReadAhead<ForwardingBody<B>>,
) -> bool {
    if parts.status != StatusCode::OK || !is_plain(&parts.headers) {
        return false;
    }
    match InvalidAnswer::check(&parts.headers, &body.beginning(usize::MAX)) {
        Ok(()) => false,
        Err(InvalidAnswer::NotJson) => !is_text(&parts.headers),
        Err(_) => true,
    }
}

fn is_text(headers: &HeaderMap) -> bool {
    ["text/", "application/x-subrip"]
        .iter()
        .any(|start| content_type(headers).starts_with(start.as_bytes()))
}

/// Returns true for a stream of events.
fn is_stream(headers: &HeaderMap) -> bool {
    ["text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson"]
        .iter()
        .any(|start| content_type(headers).starts_with(start.as_bytes()))
}

fn content_type(headers: &HeaderMap) -> &[u8] {
    headers.get(http::header::CONTENT_TYPE).map_or(b"", |kind| kind.as_bytes())
}

/// Returns the verdict for a refused request. A long window is waited for only if its end is known.
fn verdict(class: Class, refusal: &Refusal) -> Verdict {
    let delay = refusal.delay.filter(|delay| !delay.is_zero());
    match (class, refusal.kind) {
        (Class::Terminal | Class::Ok, _) => Verdict::Final,
        (_, RefusalKind::Window) if delay.is_some() => Verdict::Requeue(delay),
        (_, RefusalKind::Window) => Verdict::Final,
        // A longer one contradicts the limit.
        (_, RefusalKind::Rate) => Verdict::Requeue(delay.filter(|delay| *delay <= LONGEST_OF_RATE)),
        _ => retry(class, delay),
    }
}

/// Returns the verdict for a failure that concerns only its request.
fn retry(class: Class, delay: Option<Duration>) -> Verdict {
    let delay = delay.filter(|delay| !delay.is_zero() && *delay <= LONGEST_DELAY);
    if class == Class::Transient { Verdict::Retry(delay) } else { Verdict::Final }
}

/// The maximum delay after an error other than a refusal for a limit. As in the official SDKs, a longer one is
/// ignored.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The number of bytes of an error body to read ahead. Larger than needed for its class, so that nearly
/// all connections are free again while their requests wait.
const LONGEST_AHEAD: usize = 64 * 1_024;

/// The number of bytes of a success to read ahead: what hasn't ended by then isn't an error.
const LONGEST_FIRST_EVENT: usize = 16 * 1_024;

/// The maximum time for reading an error body, or the first event of a stream, ahead.
const LONGEST_READ: Duration = Duration::from_secs(5);

const ONCE: &str = "a response is judged once";
