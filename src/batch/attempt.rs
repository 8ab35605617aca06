//! One line on its way, through as many tries as the layer gives it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use tower_service::Service;

use super::answered::Answered;
use super::answers::Answers;
use super::client::{Client, Left};
use super::input::Line;
use super::outcome::{Failure, Outcome};
use super::shared::Shared;
use super::stop::Stop;
use crate::limiter::AcquireError;
use crate::middleware::{Http, Journey, RateLimitError, RetryFuture, RetryService};

/// The client behind the limits.
pub(super) type Limited = RetryService<Client, Http, Answers>;

type Calling = RetryFuture<Client, http::Request<Bytes>, Http, Answers>;

/// A request that was handed to the layer, in its place in the queue.
pub(super) struct Attempt {
    journey: Journey,
    left: Left,
    calling: Calling,
}

impl Attempt {
    /// Takes the next place in the queue. The layer isn't built for a key, so it is always ready.
    pub(super) fn start(service: &mut Limited, line: &Line) -> Self {
        let (journey, left) = (Journey::new(), Left::default());
        let mut request = http::Request::new(line.body.clone());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = line.url_path.parse().unwrap_or_default();
        request.extensions_mut().insert(journey.clone());
        request.extensions_mut().insert(left.clone());
        Self { journey, left, calling: service.call(request) }
    }

    /// What becomes of its line; `None` if the run was stopped before it was sent, or sent again.
    ///
    /// If the quota that it waits for is removed, it takes its place in the queue of what counts now.
    pub(super) async fn finish(self, line: &Line, shared: &Shared) -> Option<Outcome> {
        let mut attempt = self;
        loop {
            match attempt.end(line, shared).await {
                Ok(outcome) => return outcome,
                Err(QuotaRemoved) => attempt = Self::start(&mut shared.service.clone(), line),
            }
        }
    }

    async fn end(self, line: &Line, shared: &Shared) -> Result<Option<Outcome>, QuotaRemoved> {
        let Self { journey, left, calling } = self;
        let outcome = match unless_stopped(pin!(calling), &left, &shared.stop).await {
            Some(Ok(response)) => match Answered::receive(response, &journey, shared).await {
                Ok(answered) => Ok(Some(answered.judge(line, shared))),
                Err(error) => Ok(Some(broken(line, error))),
            },
            Some(Err(RateLimitError::Limited(AcquireError::Removed { .. }))) => Err(QuotaRemoved),
            Some(Err(error)) => Ok(Some(failed(line, error))),
            None => Ok(None),
        };
        shared.tally.lock().sent(&journey.facts());
        outcome
    }
}

/// The quota that a request waited for is gone, by a change of the configuration.
struct QuotaRemoved;

/// What has not left when the run is stopped does not leave.
async fn unless_stopped<F: Future>(
    mut calling: Pin<&mut F>,
    left: &Left,
    stop: &Stop,
) -> Option<F::Output> {
    let (mut halted, mut stopped) = (pin!(stop.halted()), false);
    poll_fn(|cx| {
        stopped = stopped || halted.as_mut().poll(cx).is_ready();
        if stopped && !left.is_set() {
            return Poll::Ready(None);
        }
        match calling.as_mut().poll(cx) {
            // It is back, and would be sent again.
            Poll::Pending if stopped && !left.is_set() => Poll::Ready(None),
            polled => polled.map(Some),
        }
    })
    .await
}

/// A request without an answer.
fn failed(line: &Line, error: RateLimitError) -> Outcome {
    let failure = match error.into_inner::<reqwest::Error>() {
        Ok(error) => return broken(line, error),
        // It cost no request, and under other limits it may fit: the next run looks again.
        Err(RateLimitError::Limited(AcquireError::Refused(refused))) => {
            Failure::new(refused.code.as_str(), refused.to_string()).retryable()
        }
        Err(error) => Failure::new("not_sent", chain(&error)).retryable(),
    };
    Outcome::failed(&line.custom_id, None, failure)
}

fn broken(line: &Line, error: reqwest::Error) -> Outcome {
    let code = if error.is_timeout() { "timeout" } else { "connection" };
    // Without the URL: its query may hold a key.
    let failure = Failure::new(code, chain(&error.without_url())).retryable();
    Outcome::failed(&line.custom_id, None, failure)
}

/// An error and its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
