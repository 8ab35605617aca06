use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response};
use http_body::Body;

use super::judge::{Judged, Verdict};
use crate::middleware::passing::Passing;
use crate::middleware::read_ahead::{End, ReadAhead};
use crate::middleware::reading::{Reading, is_refusal, is_refusal_in_band};
use crate::middleware::refusal::LONGEST_ERROR;
use crate::middleware::{ResponseBody, Watch};
use crate::provider::{ApiError, Class, Profile};

/// An HTTP response whose body is read ahead, until it is known whether its request is worth sending
/// again.
pub struct Judging<B: Body<Data = Bytes>> {
    held: Option<(Parts, Box<ReadAhead<Passing<B>>>)>,
    profile: Profile,
    whole: bool,
    answered_at: u64,
}

impl<B: Body<Data = Bytes>> Judging<B> {
    /// Of an error as much is read as may tell its class; of a `whole` response everything. A
    /// success that is not whole passes.
    pub(in crate::middleware) fn of(
        response: Response<B>,
        watch: Watch,
        (profile, whole): (Profile, bool),
    ) -> Judged<Response<ResponseBody<B>>, Self> {
        let answered_at = watch.now();
        let (parts, body) = response.into_parts();
        let reading: Reading = watch.head(profile, parts.status, &parts.headers);
        if parts.status.as_u16() < 400 && !whole {
            let body = ResponseBody::new(body, reading);
            return Judged::Passed(Response::from_parts(parts, body));
        }
        let body = Box::new(ReadAhead::new(Passing::new(body, reading)));
        Judged::Judging(Self { held: Some((parts, body)), profile, whole, answered_at })
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
        let delay = || waited(self.profile.retry_delay(&HeaderMap::new(), text, 0));
        match is_refusal_in_band(error) {
            true => again(class, delay().map(|_| Duration::ZERO)),
            false => again(class, None),
        }
    }
}

impl<B: Body<Data = Bytes>> Future for Judging<B> {
    type Output = (Response<ResponseBody<B>>, Verdict);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let most = if self.whole { usize::MAX } else { LONGEST_ERROR };
        let (_, body) = self.held.as_mut().expect(ONCE);
        ready!(body.poll_ahead(most, cx));
        let (parts, mut body) = self.held.take().expect(ONCE);
        let verdict = self.verdict(&parts, &mut body);
        if let (Verdict::Again(_), Some(body)) = (verdict, body.body()) {
            body.end();
        }
        body.let_go();
        Poll::Ready((Response::from_parts(parts, ResponseBody::ahead(body)), verdict))
    }
}

impl<B: Body<Data = Bytes>> fmt::Debug for Judging<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judging").field("profile", &self.profile).finish_non_exhaustive()
    }
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

const ONCE: &str = "a response is judged once";
