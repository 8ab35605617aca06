use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;

use super::judge::{Judged, Verdict};
use crate::limiter::Sleep;
use crate::middleware::passing::Passing;
use crate::middleware::read_ahead::{End, ReadAhead};
use crate::middleware::reading::{Reading, is_plain, is_refusal, is_refusal_in_band};
use crate::middleware::refusal::LONGEST_ERROR;
use crate::middleware::{ResponseBody, ResponseGuard};
use crate::provider::{ApiError, Class, InvalidAnswer, Profile};
use crate::timestamp::Timestamp;

/// An HTTP response whose body is read ahead, until it is known whether its request is worth sending
/// again.
pub struct Judging<B: Body<Data = Bytes>> {
    held: Option<(Parts, Box<ReadAhead<Passing<B>>>)>,
    profile: Profile,
    answered_at: Timestamp,
    /// How many bytes of it are read; `None` for all.
    most: Option<usize>,
    /// Until when: then it is judged by what there is.
    until: Option<Sleep>,
}

impl<B: Body<Data = Bytes>> Judging<B> {
    /// Of an error a bounded part is read, for a few seconds; of a `whole` success everything. Of
    /// neither anything after the deadline. A success that is not whole passes.
    pub(in crate::middleware) fn of(
        response: Response<B>,
        guard: ResponseGuard,
        (profile, whole): (Profile, bool),
        deadline: Option<Timestamp>,
    ) -> Judged<Response<ResponseBody<B>>, Self> {
        let (answered_at, limiter) = (guard.now(), guard.limiter().clone());
        let (parts, body) = response.into_parts();
        let reading: Reading = guard.head(profile, parts.status, &parts.headers);
        let success = parts.status.as_u16() < 400;
        if success && !whole {
            let body = ResponseBody::new(body, reading);
            return Judged::Passed(Response::from_parts(parts, body));
        }
        let held = Some((parts, Box::new(ReadAhead::new(Passing::new(body, reading)))));
        let late = (!success).then(|| answered_at + LONGEST_READ);
        let until = [late, deadline].into_iter().flatten().min();
        let until = until.map(|until| limiter.sleep_until(until));
        let most = (!success).then_some(LONGEST_AHEAD);
        Judged::Judging(Self { held, profile, answered_at, most, until })
    }

    /// Ready once there is enough of it, or no more time.
    fn poll_known(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (_, body) = self.held.as_mut().expect(ONCE);
        match (body.poll_ahead(self.most, cx), &mut self.until) {
            (Poll::Pending, Some(until)) => until.as_mut().poll(cx),
            (polled, _) => polled,
        }
    }

    fn verdict(&self, parts: &Parts, body: &mut ReadAhead<Passing<B>>) -> Verdict {
        let success = parts.status.as_u16() < 400;
        if success && body.end() == Some(End::Broken) {
            return Verdict::Again(None);
        }
        let in_band = body.body().and_then(|body| body.error().cloned());
        if let Some(error) = in_band {
            return self.in_band(&error);
        }
        match success {
            true if body.end().is_some() && is_no_answer(parts, body) => Verdict::Again(None),
            true => Verdict::Final,
            false => self.refused(parts, &body.beginning(LONGEST_ERROR)),
        }
    }

    fn refused(&self, parts: &Parts, body: &[u8]) -> Verdict {
        let Parts { status, headers, .. } = parts;
        let class = self.profile.classify(*status, headers, body);
        let error = ApiError::read(body).unwrap_or_default();
        if self.profile.is_account_wide(*status, &error) {
            return Verdict::Final;
        }
        let delay = |body| waited(self.profile.retry_delay(headers, body, self.answered_at));
        match is_refusal(*status) {
            true => again(class, delay(body).map(|_| Duration::ZERO)),
            false => again(class, delay(b"").filter(|delay| *delay <= LONGEST_DELAY)),
        }
    }

    fn in_band(&self, error: &ApiError) -> Verdict {
        let class = self.profile.classify_in_band(error);
        let text = error.message().as_bytes();
        let delay =
            || waited(self.profile.retry_delay(&HeaderMap::new(), text, Timestamp::UNIX_EPOCH));
        match is_refusal_in_band(error) {
            true => again(class, delay().map(|_| Duration::ZERO)),
            false => again(class, None),
        }
    }
}

impl<B: Body<Data = Bytes>> Future for Judging<B> {
    type Output = (Response<ResponseBody<B>>, Verdict);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.poll_known(cx));
        let (parts, mut body) = self.held.take().expect(ONCE);
        let verdict = self.verdict(&parts, &mut body);
        if let (Verdict::Again(_), Some(body)) = (verdict, body.body()) {
            body.end();
        }
        body.drop_ended_body();
        Poll::Ready((Response::from_parts(parts, ResponseBody::ahead(body)), verdict))
    }
}

impl<B: Body<Data = Bytes>> fmt::Debug for Judging<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judging").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// Whether a 200 that was read to its end has a body that answers nothing. One that nobody can read
/// passes, and so does a text that is declared as one, such as a transcript.
fn is_no_answer<B: Body<Data = Bytes>>(parts: &Parts, body: &ReadAhead<Passing<B>>) -> bool {
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
    let kind = headers.get(http::header::CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    ["text/", "application/x-subrip"].iter().any(|start| kind.starts_with(start.as_bytes()))
}

/// A delay of nothing is none: without a back-off every try would be spent at once.
fn waited(delay: Option<Duration>) -> Option<Duration> {
    delay.filter(|delay| !delay.is_zero())
}

/// A limit of a day is only waited for where it is known for how long.
fn again(class: Class, delay: Option<Duration>) -> Verdict {
    match (class, delay) {
        (Class::Transient, delay) => Verdict::Again(delay),
        (Class::UntilReset, Some(delay)) => Verdict::Again(Some(delay)),
        _ => Verdict::Final,
    }
}

/// A longer delay of what is no refusal, which holds one request only, is not believed: as in the
/// official SDKs.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// How much of an error is read ahead, in bytes: more than tells its class, so that the connection
/// of nearly every one is free again while its request waits.
const LONGEST_AHEAD: usize = 64 * 1_024;

/// The longest time for which an error body is read ahead.
const LONGEST_READ: Duration = Duration::from_secs(5);

const ONCE: &str = "a response is judged once";
