//! The attempts to send one line.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use tower_service::Service;

use super::client::{Client, InFlight};
use super::input::InputLine;
use super::job_context::{JobContext, Limited};
use super::outcome::{Failure, Outcome};
use super::received_response::{ReceivedResponse, account_rejected};
use super::response_policy::ResponsePolicy;
use super::stop::Stop;
use super::target::Base;
use paceline::ErrorChain;
use paceline::limiter::{AcquireError, Refused};
use paceline::middleware::{Facts, Http, Journey, RateLimitError, RetryFuture};

type CallFuture = RetryFuture<Client, http::Request<Bytes>, Http, ResponsePolicy>;

/// A request that was passed to the layer and is in its queue.
pub(super) struct Attempt {
    journey: Journey,
    in_flight: InFlight,
    /// Boxed, since it is large and moved often while it waits.
    call: Pin<Box<CallFuture>>,
}

impl Attempt {
    /// Queues the request. The layer has no key of its own, so it is always ready.
    pub(super) fn start(service: &mut Limited, base: &Base, line: &InputLine) -> Self {
        let (journey, in_flight) = (Journey::new(), InFlight::default());
        let mut request = http::Request::new(line.body.clone());
        *request.method_mut() = http::Method::POST;
        // The whole URL, since the path of the base may name an Azure deployment.
        *request.uri_mut() = base.join(&line.url_path).parse().unwrap_or_default();
        request.extensions_mut().insert(journey.clone());
        request.extensions_mut().insert(in_flight.clone());
        Self { journey, in_flight, call: Box::pin(service.call(request)) }
    }

    /// Waits for the outcome of the line; `None` if the run was stopped before the request was sent
    /// or retried.
    ///
    /// If the quota is removed while it waits, the request is queued again under the current
    /// quotas. A failure during an outage of the server doesn't count: the request is queued again with
    /// all its retries. A line that may be the cause of its failures counts as failed itself after
    /// some more.
    pub(super) async fn finish(self, line: &InputLine, shared: &JobContext) -> Option<Outcome> {
        let (mut attempt, mut tries) = (self, 0);
        loop {
            let journey = attempt.journey.clone();
            match attempt.end(line, shared).await {
                End::Outcome(outcome) => {
                    let facts = journey.facts();
                    tries += facts.tries();
                    let is_excused = outcome.failure().is_some_and(Failure::is_retryable)
                        && shared.limiter.stats(&facts.key).outage.is_some()
                        && (is_fault_of_server(&facts)
                            || tries <= shared.retries as usize + MAX_FAILED_PROBES);
                    if !is_excused {
                        shared.stats.lock().finished(&facts);
                        return Some(outcome);
                    }
                }
                End::Stopped => return None,
                End::Requeue => {}
            }
            attempt = Self::start(&mut shared.service.clone(), &shared.base, line);
        }
    }

    async fn end(self, line: &InputLine, shared: &JobContext) -> End {
        let Self { journey, in_flight, mut call } = self;
        let end = match run_unless_stopped(&shared.stop, call.as_mut(), &in_flight).await {
            None => End::Stopped,
            Some(Ok(response)) => {
                End::Outcome(match ReceivedResponse::receive(response, &journey, shared).await {
                    Ok(response) => response.judge(line, shared),
                    Err(error) => connection_failed(line, error),
                })
            }
            // The configuration has changed.
            Some(Err(RateLimitError::Limited(AcquireError::Removed { .. }))) => End::Requeue,
            Some(Err(error)) => match error.refused().and_then(Refused::refusal) {
                Some(refusal) => {
                    shared.stop.halt(account_rejected(refusal.status, &refusal.text));
                    End::Stopped
                }
                None => End::Outcome(failed_without_response(line, error)),
            },
        };
        shared.stats.lock().sent(&journey.facts());
        end
    }
}

/// The end of an attempt.
enum End {
    Outcome(Outcome),
    /// The run was stopped.
    Stopped,
    /// It must be queued again: its quota was removed.
    Requeue,
}

/// Runs a call until it completes. If the run is stopped while the request is not in flight, the call is
/// abandoned, and the result is `None`.
async fn run_unless_stopped<F: Future>(
    stop: &Stop,
    mut call: Pin<&mut F>,
    in_flight: &InFlight,
) -> Option<F::Output> {
    let (mut halted, mut is_halted) = (pin!(stop.halted()), false);
    poll_fn(|cx| {
        is_halted = is_halted || halted.as_mut().poll(cx).is_ready();
        if is_halted && !in_flight.is_set() {
            return Poll::Ready(None);
        }
        match call.as_mut().poll(cx) {
            // The attempt has failed, and would be retried.
            Poll::Pending if is_halted && !in_flight.is_set() => Poll::Ready(None),
            polled => polled.map(Some),
        }
    })
    .await
}

/// Returns whether the last attempt failed because of the server: it is overloaded, as it says, or the request was never
/// sent.
fn is_fault_of_server(facts: &Facts) -> bool {
    match facts.status {
        Some(status) => matches!(status.as_u16(), 503 | 529),
        None => facts.charged.is_none(),
    }
}

/// Returns the outcome of a request without a response.
fn failed_without_response(line: &InputLine, error: RateLimitError) -> Outcome {
    let failure = match error.into_inner::<reqwest::Error>() {
        Ok(error) => return connection_failed(line, error),
        // The request was not sent and may fit other limits, so the next run retries it.
        Err(RateLimitError::Limited(AcquireError::Refused(refused))) => {
            Failure::new(refused.code.as_str(), refused.to_string()).retryable()
        }
        Err(error) => Failure::new("not_sent", ErrorChain(&error).to_string()).retryable(),
    };
    Outcome::failed(&line.custom_id, None, failure)
}

fn connection_failed(line: &InputLine, error: reqwest::Error) -> Outcome {
    let code = if error.is_timeout() { "timeout" } else { "connection" };
    // Without the URL, whose query may hold an API key.
    let failure = Failure::new(code, ErrorChain(&error.without_url()).to_string()).retryable();
    Outcome::failed(&line.custom_id, None, failure)
}

/// The number of attempts, beside its own, after which a line fails that may be the cause: five lines that the server
/// never accepts look like an outage, and would end each run by `--give-up-after`. The next run sends such lines again.
const MAX_FAILED_PROBES: usize = 6;
